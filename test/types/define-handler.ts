// Compile-time promises of defineHandler(): the same as those of decorators, without any.
/* oxlint-disable typescript/no-unused-vars, typescript/no-unsafe-return -- parameters are there for their types; some types are wrong on purpose */
import {
  defineHandler,
  exponentialBackoff,
  idempotent,
  jsonCodec,
  memoryIdempotencyStore,
  minutes,
  on,
  poison,
  retry,
  success,
  textCodec,
} from 'pulsework';
import type { Delivery, HandlerDefinition, Outcome } from 'pulsework';
import { expectTypeOf } from 'vitest';
import { images, orders, shipments, unchecked, valibotShipment, zodOrder } from './topics.js';

type Order = { id: string; cents: number };
type Shipment = { parcel: string; sentAt: Date };
const named = { name: 'billing', subscription: 'billing' };

// The payload's type follows from the source.
export const handlers: readonly HandlerDefinition[] = [
  defineHandler({
    ...named,
    source: orders,
    handle: (order) => {
      expectTypeOf(order).toEqualTypeOf<Delivery<Order>>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: [orders, shipments],
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<Order | Shipment>>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: 'orders',
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: unchecked,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: 'orders',
    payload: zodOrder,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<Order>>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: { pattern: /^shipments-/ },
    payload: valibotShipment,
    codec: jsonCodec,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<Shipment>>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: { pattern: /^logs-/ },
    codec: textCodec,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<string>>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: 'orders',
    codec: jsonCodec,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery>();
      return success();
    },
  }),
  defineHandler({
    ...named,
    source: images,
    handle: (delivery) => {
      expectTypeOf(delivery).toEqualTypeOf<Delivery<Uint8Array>>();
      return success();
    },
  }),
];

// The key of idempotent() gets the payload of the topic that it is made for.
const store = memoryIdempotencyStore();
const once = { store, ttlMs: minutes(60) };
defineHandler({
  ...named,
  source: orders,
  idempotent: idempotent(orders, {
    ...once,
    key: ({ payload }) => {
      expectTypeOf(payload).toEqualTypeOf<Order>();
      return payload.id;
    },
  }),
  handle: () => success(),
});
idempotent([orders, shipments], { ...once, key: ({ payload }) => ('id' in payload ? payload.id : payload.parcel) });
idempotent<Order>({ ...once, key: ({ payload }) => payload.id });
idempotent({ ...once, key: (order: Delivery<Order>) => order.payload.id });
idempotent({ ...once, key: ({ key }) => key ?? '' });
// @ts-expect-error another topic's payload
idempotent(shipments, { ...once, key: ({ payload }) => payload.id });
// @ts-expect-error nothing is known of the payload
idempotent({ ...once, key: ({ payload }) => payload.id });
// @ts-expect-error a key is a text
idempotent(orders, { ...once, key: ({ payload }) => payload.cents });
// @ts-expect-error without a store
idempotent(orders, { key: ({ payload }) => payload.id, ttlMs: 1 });

// What a handler may be: sync or async, with or without its parameter, for a wider payload than the source's.
defineHandler({ ...named, source: orders, handle: () => success() });
defineHandler({ ...named, source: orders, handle: async () => success() });
defineHandler({ ...named, source: orders, handle: (_order: Delivery<{ id: string }>) => success() });
defineHandler({ ...named, source: orders, handle: (_order: Delivery) => success() });

// @ts-expect-error another payload
defineHandler({ ...named, source: orders, handle: (_order: Delivery<Shipment>) => success() });
// @ts-expect-error the schema's input, not its output
defineHandler({ ...named, source: orders, handle: (_order: Delivery<{ id: string; cents: string }>) => success() });
// @ts-expect-error only one of the two payloads
defineHandler({ ...named, source: [orders, shipments], handle: (_order: Delivery<Order>) => success() });
// @ts-expect-error a name says nothing about payloads
defineHandler({ ...named, source: 'orders', handle: (_order: Delivery<Order>) => success() });
// @ts-expect-error a pattern says nothing about payloads
defineHandler({ ...named, source: { pattern: /x/ }, handle: (_order: Delivery<Order>) => success() });
// @ts-expect-error another payload than the schema's
defineHandler({ ...named, source: 'orders', payload: zodOrder, handle: (_order: Delivery<Shipment>) => success() });
// @ts-expect-error a topic has its schema already
defineHandler({ ...named, source: orders, payload: valibotShipment, handle: () => success() });

// A handler says how it ended.
// @ts-expect-error gives nothing
defineHandler({ ...named, source: orders, handle: () => {} });
// @ts-expect-error nothing, later
defineHandler({ ...named, source: orders, handle: async () => {} });
// @ts-expect-error perhaps nothing
defineHandler({ ...named, source: orders, handle: (order) => (order.attempt > 1 ? success() : undefined) });
// @ts-expect-error perhaps nothing, later
defineHandler({ ...named, source: orders, handle: async (order) => (order.attempt > 1 ? success() : undefined) });
// @ts-expect-error perhaps nothing, declared
defineHandler({ ...named, source: orders, handle: (): Promise<Outcome | undefined> => Promise.resolve(success()) });
// @ts-expect-error an object that looks like an outcome
defineHandler({ ...named, source: orders, handle: () => ({ kind: 'success', messages: [] }) });
// @ts-expect-error the function that makes an outcome, not an outcome
defineHandler({ ...named, source: orders, handle: () => success });
// @ts-expect-error a wrong outgoing payload
defineHandler({ ...named, source: orders, handle: () => success(shipments.message({ parcel: 1, sentAt: '' })) });

// What a definition needs.
// @ts-expect-error without a source
defineHandler({ ...named, handle: () => success() });
// @ts-expect-error without a subscription
defineHandler({ name: 'billing', source: orders, handle: () => success() });
// @ts-expect-error without a name
defineHandler({ subscription: 'billing', source: orders, handle: () => success() });
// @ts-expect-error without a function
defineHandler({ ...named, source: orders });
// @ts-expect-error not a source
defineHandler({ ...named, source: /orders/, handle: () => success() });
// @ts-expect-error an unknown option
defineHandler({ ...named, source: orders, conccurency: 4, handle: () => success() });

// The other options, and `undefined` for absent.
defineHandler({
  ...named,
  source: orders,
  type: 'key-shared',
  initialPosition: 'latest',
  concurrency: 4,
  ordering: 'key',
  prefetch: undefined,
  redelivery: { maxDeliveries: 5, backoff: exponentialBackoff({ minMs: 10 }) },
  timeoutMs: undefined,
  onError: [on(RangeError, poison), on(Error, retry)],
  publishes: [shipments, unchecked],
  handle: () => success(shipments.message({ parcel: 'P-1', sentAt: '2026-01-01' })),
});
// @ts-expect-error not a subscription type
defineHandler({ ...named, source: orders, type: 'keyshared', handle: () => success() });
// @ts-expect-error not an ordering
defineHandler({ ...named, source: orders, ordering: 'keys', handle: () => success() });
// @ts-expect-error a topic's name is not a topic
defineHandler({ ...named, source: orders, publishes: ['shipments'], handle: () => success() });
// @ts-expect-error a function is not a rule: on(ErrorClass, ...) makes one
defineHandler({ ...named, source: orders, onError: [poison], handle: () => success() });
