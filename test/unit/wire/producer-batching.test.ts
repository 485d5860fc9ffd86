// Which messages share an entry, in which order entries leave, and which partition they go to.
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { Batcher } from '../../../src/transports/wire/batcher.js';
import { batchSequenceId, encodeBatch, encodeSingle } from '../../../src/transports/wire/entry-encoder.js';
import { OutgoingBatch } from '../../../src/transports/wire/outgoing-batch.js';
import { MessageRouting } from '../../../src/transports/wire/message-routing.js';
import { PendingBytes, PendingRoom, sizeOf } from '../../../src/transports/wire/pending-message.js';
import type { PendingMessage } from '../../../src/transports/wire/pending-message.js';
import { decodeBatch } from '../../../src/transports/wire/protocol/batch.js';
import { decompress, loadCodec } from '../../../src/transports/wire/protocol/compression.js';
import { decodeEntry, decodeFrame } from '../../../src/transports/wire/protocol/frames.js';
import type { Entry } from '../../../src/transports/wire/protocol/frames.js';
import { COMPRESSION_NUMBERS } from '../../../src/transports/wire/protocol/message-metadata.js';
import type { ResolvedBatching } from '../../../src/transports/wire/publisher-options.js';

const plain: EncodedMessage = { payload: Buffer.from('hello'), properties: {} };

function pending(sequenceId: number, message: Partial<EncodedMessage> = {}): PendingMessage {
  const whole = { ...plain, ...message };
  return { message: whole, sequenceId, bytes: sizeOf(whole), sinceMs: 0 };
}

function batchOf(messages: readonly PendingMessage[]): OutgoingBatch {
  const batch = new OutgoingBatch(0);
  for (const message of messages) void batch.add(message);
  return batch;
}

/** The sequence ids of its messages, as they are written. */
function idsOf(batch: OutgoingBatch): number[] {
  if (batch.size === 1) return [batch.lowestId];
  return decodeBatch(batch.payload(), batch.size).map(({ metadata }) => metadata.sequenceId ?? -1);
}

/** A batcher, and the sequence ids of the entries that it sent. */
function batcher(options: Partial<ResolvedBatching> = {}) {
  const sent: number[][] = [];
  const all = { maxMessages: 1_000, maxBytes: 100_000, maxDelayMs: 0, byKey: false, ...options };
  const send = (batch: OutgoingBatch) => sent.push(idsOf(batch));
  const clock = new FakeClock();
  return { batches: new Batcher(all, clock, send), sent, clock };
}

describe('a batch leaves', () => {
  it('at the end of the turn without a delay', async () => {
    const { batches, sent, clock } = batcher();
    for (const id of [0, 1, 2]) void batches.add(pending(id));
    expect(sent).toEqual([]);

    await clock.advanceBy(0);

    expect(sent).toEqual([[0, 1, 2]]);
  });

  it('after the delay of its own first message, whatever left before', async () => {
    const { batches, sent, clock } = batcher({ maxMessages: 2, maxDelayMs: 10 });
    void batches.add(pending(0));
    void batches.add(pending(1));
    await clock.advanceBy(6);
    void batches.add(pending(2));

    await clock.advanceBy(9);
    expect(sent).toEqual([[0, 1]]);
    await clock.advanceBy(1);

    expect(sent).toEqual([[0, 1], [2]]);
  });

  it('when it holds as many messages as it may', () => {
    const { batches, sent } = batcher({ maxMessages: 2 });

    for (const id of [0, 1, 2, 3, 4]) void batches.add(pending(id));

    expect(sent).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  it('before a message that would make it too large', () => {
    const payload = Buffer.alloc(400);
    const { batches, sent } = batcher({ maxBytes: 1_000 });

    for (const id of [0, 1, 2]) void batches.add(pending(id, { payload }));

    expect(sent).toEqual([[0, 1]]);
  });
});

describe('a message leaves alone, after what was gathered before it', () => {
  it('when it is delayed: a delay counts for the whole entry', () => {
    const { batches, sent } = batcher();
    void batches.add(pending(0));

    void batches.add(pending(1, { deliverAtMs: 1 }));

    expect(sent).toEqual([[0], [1]]);
  });

  it('when its id may be a repetition: fresh ids in one batch with it would be dropped as well (G-01)', () => {
    const { batches, sent } = batcher();
    batches.startAfter(10);

    for (const id of [11, 12, 11, 10, 13]) void batches.add(pending(id));
    batches.flush();

    expect(sent).toEqual([[11, 12], [11], [10], [13]]);
  });

  it('when it is larger than a batch may be', () => {
    const { batches, sent } = batcher({ maxBytes: 1_000 });

    void batches.add(pending(0, { payload: Buffer.alloc(1_001) }));

    expect(sent).toEqual([[0]]);
  });
});

describe('batches by key', () => {
  it('leave in the order of their highest ids, which is how they are counted by brokers that deduplicate (G-02)', () => {
    const { batches, sent } = batcher({ byKey: true });
    for (const [id, key] of ['A', 'B', 'B', 'A', 'C'].entries()) void batches.add(pending(id, { key }));

    batches.flush();

    expect(sent).toEqual([[1, 2], [0, 3], [4]]);
  });

  it('tell keys from ordering keys, and text from bytes', () => {
    const { batches, sent } = batcher({ byKey: true });
    const k = Buffer.from('k');
    const keys: Partial<EncodedMessage>[] = [{ key: 'k' }, { key: k }, { orderingKey: k }, {}, { key: '' }];
    for (const [id, message] of keys.entries()) void batches.add(pending(id, message));

    batches.flush();

    expect(sent).toHaveLength(keys.length);
  });

  it('lose nothing at a broker that drops entries not above its highest id, whatever the keys', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c', undefined), { maxLength: 40 }), fc.nat(12), (keys, max) => {
        let highest = -1;
        const stored: number[] = [];
        const send = (batch: OutgoingBatch): void => {
          const id = batchSequenceId(batch, true);
          if (id <= highest) return;
          highest = id;
          stored.push(...idsOf(batch));
        };
        const options = { maxMessages: max + 1, maxBytes: 100_000, maxDelayMs: 0, byKey: true };
        const batches = new Batcher(options, new FakeClock(), send);
        for (const [id, key] of keys.entries()) void batches.add(pending(id, { key }));
        batches.flush();

        expect(stored.sort((a, b) => a - b)).toEqual(keys.map((_, id) => id));
      }),
    );
  });
});

describe('an entry', () => {
  const origin = { producerId: 1, producerName: 'p', publishTimeMs: 5 };
  const entryOf = (frame: Buffer) => {
    const { command, payload } = decodeFrame(frame.subarray(4));
    return { send: command?.body, ...(decodeEntry(payload) as Entry) };
  };

  it('of a batch names its lowest and its highest id', () => {
    const { send, metadata } = entryOf(encodeBatch(batchOf([pending(3), pending(7)]), false, origin));

    expect(send).toMatchObject({ sequenceId: 3, highestSequenceId: 7, numMessages: 2 });
    expect(metadata).toMatchObject({ sequenceId: 3, highestSequenceId: 7, numMessagesInBatch: 2 });
  });

  it('of a batch by key names its highest id alone, and its key (G-02)', () => {
    const messages = [pending(3, { key: 'k' }), pending(7, { key: 'k' })];
    const { send, metadata } = entryOf(encodeBatch(batchOf(messages), true, origin));

    expect(send).toMatchObject({ sequenceId: 7, numMessages: 2 });
    expect(send).not.toHaveProperty('highestSequenceId');
    expect(metadata).toMatchObject({ sequenceId: 7, partitionKey: 'k' });
    expect(metadata).not.toHaveProperty('highestSequenceId');
  });

  it('of a batch keeps what each message has', () => {
    const messages = [
      pending(0, { payload: null, key: Buffer.from([1, 2]) }),
      pending(1, { orderingKey: Buffer.from('o'), eventTimeMs: 9, properties: { length: '1', a: 'ü' } }),
    ];
    const { payload } = entryOf(encodeBatch(batchOf(messages), false, origin));

    expect(decodeBatch(payload, 2)).toMatchObject([
      { metadata: { nullValue: true, partitionKey: 'AQI=', partitionKeyB64Encoded: true, sequenceId: 0 } },
      {
        metadata: {
          eventTime: 9,
          sequenceId: 1,
          properties: [
            { key: 'length', value: '1' },
            { key: 'a', value: 'ü' },
          ],
        },
      },
    ]);
  });

  it('of a batch is as its messages were when they were added, whatever becomes of their bytes', () => {
    const payload = Buffer.from('one');
    const batch = batchOf([pending(0, { payload }), pending(1, { payload })]);
    payload.write('two');

    const { payload: stored } = entryOf(encodeBatch(batch, false, origin));

    expect(batch.first.payload).toEqual(Buffer.from('one'));
    expect(decodeBatch(stored, 2).map(({ start, end }) => stored.toString('utf8', start, end))).toEqual(['one', 'one']);
  });

  it('of a batch that is too large becomes two, with all that each message had', () => {
    const messages: Partial<EncodedMessage>[] = [
      { payload: Buffer.from('a'), key: 'k' },
      { payload: null, key: Buffer.from([1]) },
      { properties: { name: 'value' }, eventTimeMs: 7, orderingKey: Buffer.from('o') },
    ];
    const [one, other] = batchOf(messages.map((message, id) => pending(id + 5, message))).halves();

    expect([idsOf(one), idsOf(other)]).toEqual([[5], [6, 7]]);
    expect(one.first).toMatchObject({ payload: Buffer.from('a'), key: 'k' });
    expect(other.first).toMatchObject({ payload: null, key: Buffer.from([1]) });
    const [, last] = decodeBatch(other.payload(), 2);
    expect(last?.metadata).toMatchObject({ eventTime: 7, orderingKey: Buffer.from('o') });
    expect(last?.metadata.properties).toEqual([{ key: 'name', value: 'value' }]);
    expect(one.receipts.bytes + other.receipts.bytes).toBe(
      messages.reduce((sum, message, id) => sum + pending(id, message).bytes, 0),
    );
  });

  it('of a batch is without a message that cannot be written, which fails alone', () => {
    const { batches, sent } = batcher();
    void batches.add(pending(0));

    expect(() => batches.add(pending(1, { key: { length: 1 } as unknown as string }))).toThrow(TypeError);
    void batches.add(pending(2));
    batches.flush();

    expect(sent).toEqual([[0, 2]]);
  });

  it('is compressed as a whole', async () => {
    const codec = await loadCodec(COMPRESSION_NUMBERS.lz4);
    const compression = { number: COMPRESSION_NUMBERS.lz4, codec };
    const payload = Buffer.alloc(1_000, 'x');
    const batch = batchOf([pending(0, { payload }), pending(1, { payload })]);
    const frame = encodeBatch(batch, false, { ...origin, compression });
    const { metadata, payload: stored } = entryOf(frame);

    const whole = decompress(codec, stored, metadata.uncompressedSize ?? 0);

    expect(metadata.compression).toBe(COMPRESSION_NUMBERS.lz4);
    expect(decodeBatch(whole, 2).map(({ start, end }) => whole.subarray(start, end))).toEqual([payload, payload]);
  });

  it('is left as it is where compression does not make it smaller', async () => {
    const compression = { number: COMPRESSION_NUMBERS.zlib, codec: await loadCodec(COMPRESSION_NUMBERS.zlib) };
    const { metadata, payload } = entryOf(encodeSingle(plain, 0, { ...origin, compression }));

    expect(metadata).not.toHaveProperty('compression');
    expect(payload.toString()).toBe('hello');
  });
});

describe('the partition of a message', () => {
  const partitions = [0, 1, 2, 3].map((index) => ({ index, batchesSent: 0 }));
  const routing = (options: Partial<ConstructorParameters<typeof MessageRouting>[1]> = {}, random = 0) =>
    new MessageRouting(partitions, { routing: 'round-robin', keyHash: 'java', ...options }, () => random);

  it.each([
    ['java', 'key-1', 101943363 % 4],
    ['java', 'abc', 96354 % 4],
    ['murmur3', 'key-1', 414258592 % 4],
    ['murmur3', '日本', 1155135810 % 4],
  ] as const)('%s: goes by the hash of its key %s', (keyHash, key, partition) => {
    expect(routing({ keyHash }).partitionFor({ ...plain, key }).index).toBe(partition);
  });

  it('without a key changes with each batch, not with each message', () => {
    const own = routing();
    const went: number[] = [];
    for (let i = 0; i < 8; i++) {
      const partition = own.partitionFor(plain);
      went.push(partition.index);
      if (i % 2 === 1) partition.batchesSent += 1;
    }

    expect(went).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  });

  it('without a key stays where chance put it, where one is asked for', () => {
    const own = routing({ routing: 'single' }, 0.6);

    const went = [0, 1, 2].map(() => own.partitionFor(plain).index);

    expect(went).toEqual([2, 2, 2]);
  });

  it('is what an own rule says, and an own rule that names none is told', () => {
    expect(routing({ routing: (_, count) => count - 1 }).partitionFor(plain).index).toBe(3);
    expect(() => routing({ routing: () => 4 }).partitionFor(plain)).toThrow(
      'routing must give a partition from 0 to 3, got 4',
    );
  });
});

describe('room', () => {
  /** Nothing gets its receipt. */
  const receipt = new Promise<MessageId>(() => undefined);
  const roomFor = (messages: number, bytes: PendingBytes, admit: (message: PendingMessage) => void) =>
    new PendingRoom(messages, bytes, new FakeClock(), (message) => {
      admit(message);
      return receipt;
    });

  it('is shared by all publishers of a client, in bytes', () => {
    const shared = new PendingBytes(100);
    const admitted: number[] = [];
    const admit = ({ sequenceId }: PendingMessage) => void admitted.push(sequenceId);
    const [one, other] = [roomFor(10, shared, admit), roomFor(10, shared, admit)];
    const message = { ...pending(1), bytes: 80 };
    void one.enter(message);

    void other.enter({ ...pending(2), bytes: 80 });
    expect(admitted).toEqual([1]);
    one.leave({ count: 1, bytes: 80 });

    expect(admitted).toEqual([1, 2]);
  });

  it('is there for a message that is larger than all of it, once nothing else is', () => {
    const admitted: number[] = [];
    const room = roomFor(10, new PendingBytes(100), ({ sequenceId }) => void admitted.push(sequenceId));

    void room.enter({ ...pending(1), bytes: 1_000 });

    expect(admitted).toEqual([1]);
  });

  it('is given to any number of messages that fail at once', () => {
    let failing = 0;
    const room: PendingRoom = roomFor(1, new PendingBytes(100), (message) => {
      if (message.sequenceId !== 0) failing += 1;
      if (message.sequenceId !== 0) room.leave({ count: 1, bytes: 1 });
    });
    for (let id = 0; id < 20_000; id++) void room.enter({ ...pending(id), bytes: 1 });

    room.leave({ count: 1, bytes: 1 });

    expect(failing).toBe(19_999);
  });

  it('is given in the order of asking, also to a small message behind a large one', () => {
    const admitted: number[] = [];
    const room = roomFor(10, new PendingBytes(100), ({ sequenceId }) => void admitted.push(sequenceId));
    const first = { ...pending(1), bytes: 60 };
    for (const message of [first, { ...pending(2), bytes: 60 }, { ...pending(3), bytes: 10 }]) void room.enter(message);
    expect(admitted).toEqual([1]);

    room.leave({ count: 1, bytes: 60 });

    expect(admitted).toEqual([1, 2, 3]);
  });
});
