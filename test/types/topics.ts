// Compile-time promises of topic(): publishers give what the schema takes, handlers get what it makes. Each line that
// must not compile stands beside one that does and differs from it in one thing.
import { bytesCodec, jsonCodec, textCodec, topic } from 'pulsework';
import type { Codec, OutgoingMessage, PayloadOf, Topic } from 'pulsework';
import * as v from 'valibot';
import { expectTypeOf } from 'vitest';
import { z } from 'zod';

// Both transform: text goes in, a number or a Date comes out.
export const zodOrder = z.object({ id: z.string(), cents: z.string().transform(Number) });
export const valibotShipment = v.object({
  parcel: v.string(),
  sentAt: v.pipe(
    v.string(),
    v.transform((text) => new Date(text)),
  ),
});

export const orders = topic('orders', { payload: zodOrder });
export const shipments = topic('shipments', { payload: valibotShipment });
export const unchecked = topic('unchecked');
export const explicitlyUnchecked = topic('unchecked', { payload: undefined });

// Without a schema the codec says what goes in and comes out; with one the schema does.
export const images = topic('images', { codec: bytesCodec });
export const lines = topic('lines', { codec: textCodec });
const coordinateCodec: Codec<[number, number]> = {
  name: 'coordinates',
  encode: ([x, y]) => new TextEncoder().encode(`${x},${y}`),
  decode: (bytes) => new TextDecoder().decode(bytes).split(',').map(Number) as [number, number],
};
export const coordinates = topic('coordinates', { codec: coordinateCodec });
export const compressed = topic('orders', { payload: zodOrder, codec: jsonCodec });

// What handlers get: the schema's output.
expectTypeOf<PayloadOf<typeof orders>>().toEqualTypeOf<{ id: string; cents: number }>();
expectTypeOf<PayloadOf<typeof shipments>>().toEqualTypeOf<{ parcel: string; sentAt: Date }>();
expectTypeOf<PayloadOf<typeof unchecked>>().toEqualTypeOf<unknown>();
expectTypeOf<PayloadOf<typeof explicitlyUnchecked>>().toEqualTypeOf<unknown>();
expectTypeOf<PayloadOf<readonly [typeof orders, typeof shipments]>>().toEqualTypeOf<
  { id: string; cents: number } | { parcel: string; sentAt: Date }
>();
expectTypeOf<PayloadOf<typeof images>>().toEqualTypeOf<Uint8Array>();
expectTypeOf<PayloadOf<typeof lines>>().toEqualTypeOf<string>();
expectTypeOf<PayloadOf<typeof coordinates>>().toEqualTypeOf<[number, number]>();
expectTypeOf<PayloadOf<typeof compressed>>().toEqualTypeOf<{ id: string; cents: number }>();
expectTypeOf<PayloadOf<'orders'>>().toEqualTypeOf<unknown>();
expectTypeOf<PayloadOf<{ readonly pattern: RegExp }>>().toEqualTypeOf<unknown>();

// What publishers give: the schema's input.
expectTypeOf(orders.message({ id: 'A-1', cents: '995' })).toEqualTypeOf<OutgoingMessage>();
expectTypeOf(shipments.message({ parcel: 'P-1', sentAt: '2026-01-01' })).toEqualTypeOf<OutgoingMessage>();
expectTypeOf(unchecked.message(['anything'])).toEqualTypeOf<OutgoingMessage>();

expectTypeOf(images.message(new Uint8Array())).toEqualTypeOf<OutgoingMessage>();
expectTypeOf(lines.message('a line')).toEqualTypeOf<OutgoingMessage>();

// @ts-expect-error bytes, not a text
images.message('a line');
// @ts-expect-error a text, not bytes
lines.message(new Uint8Array());
// @ts-expect-error two numbers
coordinates.message([1]);
// @ts-expect-error the output is not the input
orders.message({ id: 'A-1', cents: 995 });
// @ts-expect-error a field is missing
orders.message({ id: 'A-1' });
// @ts-expect-error a field too many
orders.message({ id: 'A-1', cents: '995', currency: 'EUR' });
// @ts-expect-error there is no message without a payload
orders.message();
// @ts-expect-error the output is not the input
shipments.message({ parcel: 'P-1', sentAt: new Date() });

// Message options.
orders.message({ id: 'A-1', cents: '995' }, { key: 'A-1', deliverAfterMs: 10, properties: { source: 'web' } });
orders.message({ id: 'A-1', cents: '995' }, { key: undefined });
// @ts-expect-error an unknown option
orders.message({ id: 'A-1', cents: '995' }, { kye: 'A-1' });
// @ts-expect-error properties are texts
orders.message({ id: 'A-1', cents: '995' }, { properties: { count: 1 } });

// Topic options.
// @ts-expect-error a schema is an option
topic('orders', zodOrder);
// @ts-expect-error a class is not a schema
topic('orders', { payload: Date });
// @ts-expect-error an unknown option
topic('orders', { paylaod: zodOrder });

// Topics of any payload fit where the payload does not matter.
export const anyTopics: readonly Topic<never>[] = [orders, shipments, unchecked];
// @ts-expect-error a name is not a topic
export const notTopics: readonly Topic<never>[] = ['orders'];
