// What workflows send has to fit the broker: by what it takes at that moment, and whatever telemetry adds.
import { topic } from 'pulsework';
import { FakeClock } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { OutgoingRows } from '../../../src/workflow/outgoing-rows.js';

const out = topic('out');
const fullName = (name: string): string => `persistent://public/default/${name}`;
const clock = new FakeClock();

it('the limit is the one of the broker that the transport is connected with by then', async () => {
  let limit = 5_000;
  const rows = new OutgoingRows({ clock, fullName, maxMessageBytes: () => limit }, (properties) => properties);
  const publish = { topic: out, payload: 'x'.repeat(5_000), options: {} };
  await expect(rows.message(publish, 'm')).rejects.toMatchObject({
    code: 'PUBLISH_REFUSED',
    message: expect.stringMatching(
      /a message of 5\d{3} bytes, with its envelope, is larger than the 5000 bytes/,
    ) as unknown,
  });
  limit = 6_000;
  expect((await rows.message(publish, 'm')).messageId).toBe('m');
});

it('what telemetry adds is left out where there is no room for it, and nothing is refused for it', async () => {
  const carried = (properties: Readonly<Record<string, string>>) => ({ ...properties, baggage: 'b'.repeat(1_000) });
  const rows = new OutgoingRows({ clock, fullName, maxMessageBytes: () => 5_000 }, carried);
  const carries = async (bytes: number): Promise<boolean> => {
    const { message } = await rows.message({ topic: out, payload: 'x'.repeat(bytes), options: {} }, 'm');
    return 'baggage' in message.properties;
  };
  expect([await carries(3_000), await carries(4_000)]).toEqual([true, false]);
});
