import { beforeEach, describe, expect, it } from 'vitest';
import { copyProperties } from '../../../src/core/properties.js';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { KeyGuards } from '../../../src/redelivery/key-guards.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

const TOPIC = 'persistent://public/default/accounts';
const DELAY_MS = 5_000;

let clock: FakeClock;
let guards: KeyGuards;
beforeEach(() => {
  clock = new FakeClock();
  guards = new KeyGuards(clock);
});

function message(
  entryId: number,
  { key = 'a', batchIndex = -1, topic = TOPIC, ...rest }: Partial<ReceivedMessage> & BatchPlace = {},
): ReceivedMessage {
  return {
    id: {
      ledgerId: 1,
      entryId,
      partition: topic === TOPIC ? -1 : 1,
      batchIndex,
      batchSize: batchIndex < 0 ? 0 : 3,
      topic,
    },
    payload: new Uint8Array(),
    properties: copyProperties({}),
    key,
    publishTimeMs: 0,
    redeliveryCount: 0,
    connection: 1,
    ...rest,
  };
}
interface BatchPlace {
  readonly batchIndex?: number;
  readonly topic?: string;
}

describe('which key is guarded (K-43)', () => {
  it('the ordering key goes before the key', () => {
    guards.add(message(1, { key: 'same', orderingKey: Buffer.from('x') }), DELAY_MS);
    expect(guards.turnsBack(message(2, { key: 'same', orderingKey: Buffer.from('y') }))).toBe(false);
    expect(guards.turnsBack(message(3, { key: 'other', orderingKey: Buffer.from('x') }))).toBe(true);
  });

  it('bytes and the text of these bytes are one key', () => {
    guards.add(message(1, { key: 'привет' }), DELAY_MS);
    expect(guards.turnsBack(message(2, { key: Buffer.from('привет') }))).toBe(true);
  });

  it('presence decides, not length: an empty key is a key', () => {
    expect(guards.add(message(1, { key: '' }), DELAY_MS)).toBe(true);
    expect(guards.turnsBack(message(2, { key: '' }))).toBe(true);
  });

  it('a message without a key, and one that was cut into chunks, guards nothing; the second goes back like any other', () => {
    const { key: _, ...keyless } = message(1);
    const chunked = { ...message(2), id: { ...message(2).id, firstChunk: { ledgerId: 1, entryId: 1, partition: -1 } } };
    expect(guards.add(keyless, DELAY_MS)).toBe(false);
    expect(guards.add(chunked, DELAY_MS)).toBe(false);
    guards.add(message(0), DELAY_MS);
    expect(guards.turnsBack(chunked)).toBe(true);
    expect(guards.turnsBack({ ...keyless, id: message(3).id })).toBe(false);
    expect(guards.size).toBe(1);
  });

  it('the same key on another topic is another one', () => {
    guards.add(message(1), DELAY_MS);
    expect(guards.turnsBack(message(2, { topic: `${TOPIC}-partition-1` }))).toBe(false);
  });
});

describe('what goes back (K-44)', () => {
  it('strictly later entries of the key, and nothing else', () => {
    guards.add(message(5), DELAY_MS);
    expect(guards.turnsBack(message(6))).toBe(true);
    expect(guards.turnsBack(message(4))).toBe(false);
    expect(guards.turnsBack(message(6, { key: 'b' }))).toBe(false);
  });

  it('not the retry itself, nor the other messages of its batch', () => {
    guards.add(message(5, { batchIndex: 1 }), DELAY_MS);
    expect([0, 1, 2].map((batchIndex) => guards.turnsBack(message(5, { batchIndex })))).toEqual([false, false, false]);
  });

  it('the earliest of several failed ones decides', () => {
    guards.add(message(7), DELAY_MS);
    guards.add(message(5), DELAY_MS);
    expect(guards.turnsBack(message(6))).toBe(true);
    guards.acknowledged(message(5).id);
    expect(guards.turnsBack(message(6))).toBe(false);
    expect(guards.turnsBack(message(8))).toBe(true);
  });

  it('all messages of one later batch go back, each once', () => {
    guards.add(message(5), DELAY_MS);
    expect([0, 1, 2].map((batchIndex) => guards.turnsBack(message(6, { batchIndex })))).toEqual([true, true, true]);
    expect(guards.size).toBe(1);
  });

  it('a later ledger is later, whatever the entry', () => {
    guards.add(message(5), DELAY_MS);
    expect(guards.turnsBack({ ...message(0), id: { ...message(0).id, ledgerId: 2 } })).toBe(true);
  });
});

describe('when a guard ends (K-46)', () => {
  it('when all that failed here has been acknowledged, not before', () => {
    guards.add(message(1), DELAY_MS);
    guards.add(message(2), DELAY_MS);
    guards.acknowledged(message(1).id);
    expect(guards.turnsBack(message(3))).toBe(true);
    guards.acknowledged(message(2).id);
    expect(guards.turnsBack(message(3))).toBe(false);
    expect(guards.size).toBe(0);
  });

  it('of a batch when each message that failed has been acknowledged', () => {
    guards.add(message(1, { batchIndex: 0 }), DELAY_MS);
    guards.add(message(1, { batchIndex: 2 }), DELAY_MS);
    guards.acknowledged(message(1, { batchIndex: 1 }).id);
    guards.acknowledged(message(1, { batchIndex: 0 }).id);
    expect(guards.turnsBack(message(2))).toBe(true);
    guards.acknowledged(message(1, { batchIndex: 2 }).id);
    expect(guards.turnsBack(message(2))).toBe(false);
  });

  it('when what went back under it arrives again: the broker no longer waits', () => {
    guards.add(message(1), DELAY_MS);
    expect(guards.turnsBack(message(2))).toBe(true);
    expect(guards.turnsBack(message(3))).toBe(true);
    expect(guards.turnsBack(message(2))).toBe(false);
    expect(guards.turnsBack(message(3))).toBe(false);
    expect(guards.size).toBe(0);
  });

  it('not for what is later than another one that went back and has not come again: it would pass', () => {
    guards.add(message(1), DELAY_MS);
    expect([2, 4].map((entryId) => guards.turnsBack(message(entryId)))).toEqual([true, true]);
    expect([2, 3, 5].map((entryId) => guards.turnsBack(message(entryId)))).toEqual([false, false, true]);
    expect([4, 5, 6].map((entryId) => guards.turnsBack(message(entryId)))).toEqual([false, false, false]);
    expect(guards.size).toBe(0);
  });

  it('not for a message that fails then: what went back before it failed says nothing of it', () => {
    guards.add(message(1), DELAY_MS);
    expect([2, 3].map((entryId) => guards.turnsBack(message(entryId)))).toEqual([true, true]);
    expect(guards.turnsBack(message(2))).toBe(false);
    guards.add(message(2), DELAY_MS);
    expect(guards.turnsBack(message(3))).toBe(true);
    guards.acknowledged(message(2).id);
    expect(guards.turnsBack(message(3))).toBe(false);
  });

  it('when the connection is lost, that of its own topic only', () => {
    guards.add(message(1), DELAY_MS);
    guards.add(message(1, { topic: `${TOPIC}-partition-1` }), DELAY_MS);
    guards.connectionLost(TOPIC);
    expect(guards.turnsBack(message(2))).toBe(false);
    expect(guards.turnsBack(message(2, { topic: `${TOPIC}-partition-1` }))).toBe(true);
  });

  it('60 s after the delay of its message: the retry may have gone to another consumer', async () => {
    guards.add(message(1), DELAY_MS);
    await clock.advanceBy(DELAY_MS + 59_999);
    expect(guards.turnsBack(message(2))).toBe(true);
    await clock.advanceBy(1);
    expect(guards.turnsBack(message(3))).toBe(false);
  });

  it('the latest of several expiries counts, and each failure sets it anew', async () => {
    guards.add(message(1), 100_000);
    guards.add(message(2), DELAY_MS);
    await clock.advanceBy(159_999);
    expect(guards.turnsBack(message(3))).toBe(true);
    guards.add(message(1), DELAY_MS);
    await clock.advanceBy(DELAY_MS + 59_999);
    expect(guards.turnsBack(message(4))).toBe(true);
  });

  it('with an unlimited delay no time ends it', async () => {
    guards.add(message(1), Infinity);
    await clock.advanceBy(86_400_000);
    expect(guards.turnsBack(message(2))).toBe(true);
  });

  it('not when the retry is asked for or arrives: only what is acknowledged is resolved', () => {
    guards.add(message(1), 0);
    expect(guards.turnsBack(message(1, { redeliveryCount: 1 }))).toBe(false);
    expect(guards.turnsBack(message(2))).toBe(true);
  });
});

it('what went back guards what is later until it has come again, also when what failed is acknowledged meanwhile (K-46)', () => {
  guards.add(message(1), Infinity);
  guards.wentBack(message(2));
  guards.wentBack(message(2, { key: 'other' }));
  guards.acknowledged(message(1).id);
  expect([message(4), message(2), message(5), message(3)].map((one) => guards.turnsBack(one))).toEqual([
    true,
    false,
    true,
    false,
  ]);
});

describe('a batch that came again (K-47)', () => {
  it('what the broker no longer sends of it has been acknowledged elsewhere', () => {
    guards.add(message(1, { batchIndex: 0 }), DELAY_MS);
    guards.add(message(1, { batchIndex: 2 }), DELAY_MS);
    guards.cameAgain(message(1).id, [1, 2]);
    guards.acknowledged(message(1, { batchIndex: 2 }).id);
    expect(guards.size).toBe(0);
  });

  it('with nothing left of what failed the guard ends', () => {
    guards.add(message(1, { batchIndex: 0 }), DELAY_MS);
    guards.cameAgain(message(1).id, [1, 2]);
    expect(guards.size).toBe(0);
  });
});

it('keeps nothing of keys whose messages were acknowledged', () => {
  for (let entry = 0; entry < 1_000; entry++) guards.add(message(entry, { key: `k${entry}` }), DELAY_MS);
  for (let entry = 0; entry < 1_000; entry++) guards.acknowledged(message(entry).id);
  expect(guards.size).toBe(0);
});
