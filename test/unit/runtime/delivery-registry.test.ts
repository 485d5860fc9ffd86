import { beforeEach, describe, expect, it } from 'vitest';
import type { MessageId, ReceivedMessage } from '../../../src/index.js';
import { afterFailure } from '../../../src/runtime/failure-histories.js';
import { DeliveryRecord } from '../../../src/runtime/delivery-record.js';
import { DeliveryRegistry } from '../../../src/runtime/delivery-registry.js';
import { FakeClock } from '../../../src/testing.js';

const WINDOW_MS = 10_000;
let clock: FakeClock;
let asked: string[];
let answer: () => Promise<void>;
let registry: DeliveryRegistry;
beforeEach(() => {
  clock = new FakeClock();
  asked = [];
  answer = () => Promise.resolve();
  registry = new DeliveryRegistry({
    clock,
    duplicateWindowMs: WINDOW_MS,
    onReleased: () => undefined,
    onRequestFailed: () => undefined,
    redeliver: (ids) => {
      asked.push(...ids.map((id) => `${id.entryId}`));
      return answer();
    },
  });
});

function message(entryId: number, rest: Partial<MessageId> = {}, redeliveryCount = 0, connection = 1): ReceivedMessage {
  const id = {
    ledgerId: 1,
    entryId,
    partition: -1,
    batchIndex: -1,
    batchSize: 0,
    topic: 'persistent://public/default/t',
    ...rest,
  };
  return { id, payload: new Uint8Array(), properties: {}, publishTimeMs: 0, redeliveryCount, connection };
}

const inBatch = (entryId: number, batchIndex: number, batchSize = 3): ReceivedMessage =>
  message(entryId, { batchIndex, batchSize });

function admitNew(arrived: ReceivedMessage): DeliveryRecord {
  const arrival = registry.admit(arrived);
  if (!(arrival instanceof DeliveryRecord)) throw new Error(`expected a new record, got a copy of ${arrival.copyOf}`);
  return arrival;
}

const fail = (record: DeliveryRecord): void =>
  void (record.history = afterFailure(record.history, record.attempt, clock.now()));

describe('copies', () => {
  it('of a waiting or running message are taken over, not run', () => {
    const record = admitNew(message(1));
    const copy = message(1, {}, 0, 2);
    expect(registry.admit(copy)).toEqual({ copyOf: 'alive', record });
    record.state = 'running';
    expect(registry.admit(copy)).toEqual({ copyOf: 'alive', record });
    expect(record.message).toBe(copy);
  });

  it('of an acknowledged message are recognised for the duplicate window, later they run', async () => {
    registry.settled(admitNew(message(1)));
    await clock.advanceBy(WINDOW_MS);
    expect(registry.admit(message(1))).toEqual({ copyOf: 'acknowledged' });
    await clock.advanceBy(1);
    expect(registry.admit(message(1))).toBeInstanceOf(DeliveryRecord);
  });

  it('of a held message stay held until it is due', async () => {
    const record = admitNew(message(1));
    fail(record);
    registry.hold(record, clock.now() + 500);
    expect(registry.admit(message(1))).toEqual({ copyOf: 'held' });
    await clock.advanceBy(500);
    expect(asked).toEqual(['1']);
    expect(admitNew(message(1, {}, 1)).attempt).toBe(2);
  });

  it('that come while redelivery is being asked for are the answer, and the request is not repeated', async () => {
    let answer: () => void = () => undefined;
    registry = new DeliveryRegistry({
      clock,
      duplicateWindowMs: WINDOW_MS,
      onReleased: () => undefined,
      onRequestFailed: () => undefined,
      redeliver: (ids) =>
        new Promise((_, reject) => {
          asked.push(...ids.map((id) => `${id.entryId}`));
          answer = () => reject(new Error('no answer'));
        }),
    });
    registry.hold(admitNew(message(1)), clock.now());
    await clock.advanceBy(0);
    expect(registry.admit(message(1, {}, 1))).toBeInstanceOf(DeliveryRecord);
    answer();
    await clock.advanceBy(5_000);
    expect(asked).toEqual(['1']);
  });
});

describe('attempts', () => {
  it('are never lower than what was seen here, though the broker forgot its count', async () => {
    const record = admitNew(message(1));
    fail(record);
    registry.hold(record, clock.now() + 10);
    await clock.advanceBy(10);
    expect(admitNew(message(1, {}, 0)).attempt).toBe(2);
  });

  it('take the broker count of another process', () => {
    expect(admitNew(message(1, {}, 4)).attempt).toBe(5);
  });

  it('in a producer batch ignore the count of the entry, which may be a neighbour failing', () => {
    expect(admitNew(message(1, { batchIndex: 0, batchSize: 2 }, 4)).attempt).toBe(1);
    expect(admitNew(message(2, { batchIndex: 0, batchSize: 1 }, 4)).attempt).toBe(5);
  });

  it('are forgotten with the acknowledgement', async () => {
    const record = admitNew(message(1));
    fail(record);
    registry.settled(record);
    await clock.advanceBy(WINDOW_MS + 1);
    expect(admitNew(message(1)).attempt).toBe(1);
  });
});

describe('a lost connection', () => {
  it('drops what waits, keeps what runs, and lets held ids sleep until their copy comes', async () => {
    const waiting = admitNew(message(1));
    const running = admitNew(message(2));
    running.state = 'running';
    const held = admitNew(message(3));
    fail(held);
    registry.hold(held, clock.now() + 1_000);
    registry.connectionLost('persistent://public/default/t');
    await clock.advanceBy(500);
    expect(waiting.state).toBe('gone');
    expect(registry.admit(message(1, {}, 0, 2))).toBeInstanceOf(DeliveryRecord);
    expect(registry.admit(message(2, {}, 0, 2))).toMatchObject({ copyOf: 'alive' });
    expect(registry.admit(message(3, {}, 0, 2))).toEqual({ copyOf: 'held' });
    await clock.advanceBy(500);
    expect(asked).toEqual(['3']);
  });

  it('asks for nothing before the copy has come, and runs it at once when it is due by then', async () => {
    const held = admitNew(message(3));
    fail(held);
    registry.hold(held, clock.now() + 100);
    registry.connectionLost('persistent://public/default/t');
    await clock.advanceBy(10_000);
    expect(asked).toEqual([]);
    expect(admitNew(message(3, {}, 0, 2)).attempt).toBe(2);
  });

  it('keeps the failures seen of what was kept in place', () => {
    const kept = admitNew(message(1));
    fail(kept);
    registry.connectionLost('persistent://public/default/t');
    expect(admitNew(message(1, {}, 0, 2)).attempt).toBe(2);
  });
});

describe('producer batches', () => {
  it('an entry is asked back only when none of its messages waits or runs', async () => {
    const [a, b] = [admitNew(inBatch(1, 0)), admitNew(inBatch(1, 1))];
    a.state = b.state = 'running';
    registry.hold(a, clock.now() + 100);
    await clock.advanceBy(1_000);
    expect(asked).toEqual([]);
    registry.settled(b);
    await clock.advanceBy(0);
    expect(asked).toEqual(['1']);
  });

  it('a message kept in place does not hold up its entry', async () => {
    const [a, b] = [admitNew(inBatch(1, 0)), admitNew(inBatch(1, 1))];
    b.state = 'running';
    registry.hold(a, clock.now() + 100);
    await clock.advanceBy(100);
    b.state = 'kept';
    registry.resting(b);
    await clock.advanceBy(0);
    expect(asked).toEqual(['1']);
    expect(registry.admit(inBatch(1, 1))).toEqual({ copyOf: 'alive', record: b });
  });

  it('on redelivery, finished messages do not run again and those not yet due are held again', async () => {
    const [a, b, c] = [admitNew(inBatch(1, 0)), admitNew(inBatch(1, 1)), admitNew(inBatch(1, 2))];
    registry.settled(a);
    fail(b);
    registry.hold(b, clock.now() + 100);
    fail(c);
    registry.hold(c, clock.now() + 1_000);
    await clock.advanceBy(100);
    expect(asked).toEqual(['1']);
    expect(registry.admit(inBatch(1, 0))).toEqual({ copyOf: 'acknowledged' });
    expect(admitNew(inBatch(1, 1)).attempt).toBe(2);
    expect(registry.admit(inBatch(1, 2))).toEqual({ copyOf: 'held' });
    registry.settled(aliveRecord(inBatch(1, 1)));
    await clock.advanceBy(900);
    expect(asked).toEqual(['1', '1']);
    expect(admitNew(inBatch(1, 2)).attempt).toBe(2);
  });

  it('a whole entry that is done is recognised like a single message', async () => {
    for (const index of [0, 1, 2]) registry.settled(admitNew(inBatch(1, index)));
    expect(registry.admit(inBatch(1, 1))).toEqual({ copyOf: 'acknowledged' });
    await clock.advanceBy(WINDOW_MS + 1);
    expect(registry.admit(inBatch(1, 1))).toBeInstanceOf(DeliveryRecord);
  });

  it('partly done entries are remembered, but not without bound', () => {
    for (let entry = 0; entry < 10_001; entry++) registry.settled(admitNew(inBatch(entry, 0)));
    expect(registry.admit(inBatch(10_000, 0))).toEqual({ copyOf: 'acknowledged' });
    expect(registry.admit(inBatch(0, 0))).toBeInstanceOf(DeliveryRecord);
  });
});

function aliveRecord(copy: ReceivedMessage): DeliveryRecord {
  const arrival = registry.admit(copy);
  if (arrival instanceof DeliveryRecord || arrival.copyOf !== 'alive')
    throw new Error('expected a copy of a live record');
  return arrival.record;
}

describe('a message of a batch that comes while the entry is being asked back', () => {
  /** The first of three waits; the request that asks for it fails after a second. */
  async function askedBack(): Promise<void> {
    answer = () => new Promise((_, reject) => clock.setTimer(1_000, () => reject(new Error('no answer'))));
    const record = admitNew(inBatch(1, 0));
    fail(record);
    registry.hold(record, clock.now());
    await clock.advanceBy(0);
    answer = () => Promise.resolve();
  }

  it('for the first time is no answer: when the request fails, it is made again', async () => {
    await askedBack();
    registry.settled(admitNew(inBatch(1, 1)));
    await clock.advanceBy(5_000);

    expect(asked).toEqual(['1', '1']);
  });

  it('again is the answer: nothing more is asked', async () => {
    await askedBack();
    registry.settled(admitNew(inBatch(1, 0)));
    await clock.advanceBy(5_000);

    expect(asked).toEqual(['1']);
  });
});
