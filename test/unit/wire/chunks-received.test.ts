// Messages in chunks, as a consumer gets them from a scripted server: joined, settled as one, and given up within limits.
import { deflateSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { formatMessageId, sameMessageId } from '../../../src/core/message-id.js';
import { encodeSend } from '../../../src/transports/wire/protocol/frames.js';
import type { MessageMetadata } from '../../../src/transports/wire/protocol/message-metadata.js';
import { TOPIC, never, receiveTexts, section, startSubscription, textOf } from '../../support/scripted-consumer.js';
import { sectionOf } from '../../support/wire-server.js';
import { reconnected, start } from './wire-consumer-kit.js';

/** Chunk `chunkId` of `pieces`, the message called `uuid`. */
function chunk(
  uuid: string,
  pieces: readonly (string | Buffer)[],
  chunkId: number,
  more: Partial<MessageMetadata> = {},
) {
  const bytes = pieces.map((piece) => Buffer.from(piece));
  const totalChunkMsgSize = bytes.reduce((sum, { length }) => sum + length, 0);
  const whole = { producerName: 'p', sequenceId: 0, publishTime: 1, uuid, numChunksFromMsg: pieces.length };
  const metadata = { ...whole, totalChunkMsgSize, chunkId, ...more };
  return sectionOf(encodeSend({ producerId: 1, sequenceId: 0 }, metadata, bytes[chunkId] ?? Buffer.alloc(0)));
}

const ABC = ['aa', 'bbb', 'c'] as const;
const abc = (index: number, more?: Partial<MessageMetadata>, uuid = 'u'): Buffer => chunk(uuid, ABC, index, more);
const entries = (ids: readonly { readonly entryId: number }[] | undefined) => ids?.map(({ entryId }) => entryId);

describe('a message in chunks', () => {
  it('is handed on once it is whole, with the id of its last chunk and of its first', async () => {
    const { deliver, subscription } = await startSubscription();
    const more = { partitionKey: 'k', properties: [{ key: 'a', value: 'b' }], eventTime: 5 };
    [0, 1, 2].forEach((index) => deliver(index, abc(index, more)));
    deliver(3, section('next'));

    const message = await subscription.receive(never);

    expect(message).toMatchObject({ payload: Buffer.from('aabbbc'), key: 'k', properties: { a: 'b' }, eventTimeMs: 5 });
    expect(message?.id).toMatchObject({ ledgerId: 1, entryId: 2, firstChunk: { ledgerId: 1, entryId: 0 } });
    expect(formatMessageId(message!.id)).toBe('1:2:-1');
    expect(textOf(await subscription.receive(never))).toBe('next');
  });

  it('is told apart from others that come between its chunks, in chunks or not', async () => {
    const { deliver, subscription } = await startSubscription();
    deliver(0, abc(0));
    deliver(1, chunk('other', ['x', 'y'], 0));
    deliver(2, section('single'));
    deliver(3, abc(1));
    deliver(4, chunk('other', ['x', 'y'], 1));
    deliver(5, chunk('u', ['1', '2'], 0, { producerName: 'another' }));
    deliver(6, abc(2));
    deliver(7, chunk('u', ['1', '2'], 1, { producerName: 'another' }));

    expect(await receiveTexts(subscription, 4)).toEqual(['single', 'xy', 'aabbbc', '12']);
  });

  it('is decompressed when it is whole', async () => {
    const { deliver, subscription } = await startSubscription();
    const text = 'compressed '.repeat(1_000);
    const bytes = deflateSync(text);
    const pieces = [bytes.subarray(0, 7), bytes.subarray(7)];
    const more = { compression: 2, uncompressedSize: text.length };
    deliver(0, chunk('z', pieces, 0, more));
    deliver(1, chunk('z', pieces, 1, more));
    deliver(2, section('next'));

    expect(await receiveTexts(subscription, 2)).toEqual([text, 'next']);
  });

  it('gives back the permits of all chunks but the last at once', async () => {
    const { deliver, granted, settled } = await startSubscription({ prefetch: 1 });
    await settled();
    expect(granted()).toBe(1);
    deliver(0, abc(0));
    deliver(1, abc(1));
    deliver(2, abc(2));
    await settled();

    expect(granted()).toBe(3);
  });

  it('is acknowledged with every chunk, in one command', async () => {
    const { deliver, subscription, all } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));

    await subscription.acknowledge([(await subscription.receive(never))!.id]);

    expect(all('ACK').map(({ messageId }) => entries(messageId))).toEqual([[0, 1, 2]]);
  });

  it('is acknowledged with every chunk by the text form of its id', async () => {
    const { deliver, subscription, all } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    const { firstChunk, ...id } = (await subscription.receive(never))!.id;

    await subscription.acknowledge([id]);

    expect(firstChunk).toEqual({ ledgerId: 1, entryId: 0, partition: -1 });
    expect(all('ACK').map(({ messageId }) => entries(messageId))).toEqual([[0, 1, 2]]);
  });

  it('is asked for again with every chunk, comes again as one, and counts one redelivery', async () => {
    const { deliver, subscription, server, all } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    await subscription.redeliver([(await subscription.receive(never))!.id]);
    const asked = await server.command('REDELIVER_UNACKNOWLEDGED_MESSAGES');
    [0, 1, 2].forEach((index) => deliver(index, abc(index), { redeliveryCount: 1 }));

    const again = (await subscription.receive(never))!;
    await subscription.acknowledge([again.id]);

    expect(entries(asked.messageIds)).toEqual([0, 1, 2]);
    expect(again).toMatchObject({ payload: Buffer.from('aabbbc'), redeliveryCount: 1 });
    expect(entries(all('ACK')[0]?.messageId)).toEqual([0, 1, 2]);
  });

  it('is sought at its first chunk', async () => {
    const { deliver, subscription, server } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    const { id } = (await subscription.receive(never))!;

    await subscription.seek(id);

    expect((await server.command('SEEK')).messageId).toEqual({ ledgerId: 1, entryId: 0 });
  });

  it('is acknowledged as a whole although its acknowledgement was lost with the connection', async () => {
    const script = { ACK: () => undefined };
    const { deliver, subscription, server, all, clock, consumerId } = await start({}, script);
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    const { id } = (await subscription.receive(never))!;
    const lost = expect(subscription.acknowledge([id])).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    await server.command('ACK');
    server.peers[0]?.cut();
    await lost;
    await reconnected(server, clock);
    await server.command('FLOW', 2);
    const again = subscription.acknowledge([id]);
    await server.command('ACK', 2);
    server.peers[0]?.send('ACK_RESPONSE', { consumerId, requestId: all('ACK')[1]?.requestId ?? -1 });
    await again;

    expect(all('ACK').map(({ messageId }) => entries(messageId))).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  it('is not joined from chunks of two connections', async () => {
    const { deliver, subscription, server, clock } = await start();
    deliver(0, abc(0));
    deliver(1, abc(1));
    await vi.waitFor(() => expect(server.received.some(({ name }) => name === 'FLOW')).toBe(true));
    server.peers[0]?.cut();
    await reconnected(server, clock);
    await server.command('FLOW', 2);
    deliver(0, chunk('u', ['AA', 'BBB', 'C'], 0));
    deliver(1, chunk('u', ['AA', 'BBB', 'C'], 1));
    deliver(2, chunk('u', ['AA', 'BBB', 'C'], 2));

    expect(textOf(await subscription.receive(never))).toBe('AABBBC');
  });

  it('with a null value stays null', async () => {
    const { deliver, subscription } = await startSubscription();
    deliver(0, chunk('n', ['', ''], 0, { nullValue: true }));
    deliver(1, chunk('n', ['', ''], 1, { nullValue: true }));

    expect((await subscription.receive(never))?.payload).toBeNull();
  });
});

describe('chunks that were sent twice', () => {
  it('are acknowledged with the message: those before it was whole', async () => {
    const { deliver, subscription, all } = await startSubscription();
    deliver(0, abc(0));
    deliver(1, abc(1));
    deliver(2, abc(1));
    deliver(3, abc(2));

    const message = (await subscription.receive(never))!;
    await subscription.acknowledge([message.id]);

    expect(textOf(message)).toBe('aabbbc');
    expect(entries(all('ACK')[0]?.messageId)).toEqual([0, 1, 2, 3]);
  });

  it('from the first one on begin the message anew, and what came before goes with it', async () => {
    const { deliver, subscription, all } = await startSubscription();
    deliver(0, chunk('u', ['11', '222', '3'], 0));
    deliver(1, chunk('u', ['11', '222', '3'], 1));
    [0, 1, 2].forEach((index) => deliver(2 + index, abc(index)));

    const message = (await subscription.receive(never))!;
    await subscription.acknowledge([message.id]);

    expect(textOf(message)).toBe('aabbbc');
    expect(message.id).toMatchObject({ entryId: 4, firstChunk: { entryId: 2 } });
    expect(entries(all('ACK')[0]?.messageId)).toEqual([0, 1, 2, 3, 4]);
  });

  it('while it is handled go with it, and afterwards at once', async () => {
    const { deliver, subscription, all, server } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    const { id } = (await subscription.receive(never))!;
    deliver(3, abc(2));
    deliver(4, section('next'));
    await subscription.receive(never);
    await subscription.acknowledge([id]);
    deliver(5, abc(1));
    await server.command('ACK', 2);

    expect(all('ACK').map(({ messageId }) => entries(messageId))).toEqual([[0, 1, 2, 3], [5]]);
  });

  it('make the same message when they come out of order', async () => {
    const { deliver, subscription } = await startSubscription();
    deliver(2, abc(2));
    deliver(0, abc(0));
    deliver(1, abc(1));

    const message = (await subscription.receive(never))!;

    expect(textOf(message)).toBe('aabbbc');
    expect(message.id).toMatchObject({ entryId: 2, firstChunk: { entryId: 0 } });
  });
});

describe('what stays incomplete', () => {
  const options = { maxIncompleteChunkedMessages: 2, expireIncompleteChunksMs: 1_000 };

  it('is given up without an acknowledgement when too many are, and told', async () => {
    const { deliver, settled, all, lines } = await startSubscription(options);
    ['a', 'b', 'c'].forEach((uuid, entry) => deliver(entry, abc(0, {}, uuid)));
    await settled();

    expect(all('ACK')).toEqual([]);
    const reason =
      /entry 1:0 of .* stays unacknowledged .* 1 of 3 chunks of its message came, and more than 2 messages/;
    expect(lines).toMatchObject([{ level: 'error', text: reason }]);
  });

  it('is joined after all when its last chunk comes: all are asked for again, uncounted', async () => {
    const { deliver, subscription, server } = await startSubscription(options);
    ['a', 'b', 'c'].forEach((uuid, entry) => deliver(entry, abc(0, {}, uuid)));
    deliver(3, abc(1, {}, 'a'));
    deliver(4, abc(2, {}, 'a'));
    const asked = await server.command('REDELIVER_UNACKNOWLEDGED_MESSAGES');
    deliver(0, abc(0, {}, 'a'), { redeliveryCount: 1 });
    deliver(3, abc(1, {}, 'a'), { redeliveryCount: 1 });
    deliver(4, abc(2, {}, 'a'), { redeliveryCount: 1 });

    expect(entries(asked.messageIds)).toEqual([0, 3, 4]);
    expect(await subscription.receive(never)).toMatchObject({ payload: Buffer.from('aabbbc'), redeliveryCount: 0 });
  });

  it('is given up when no chunk came for the time set, not before', async () => {
    const { deliver, settled, clock, lines, all } = await start(options);
    deliver(0, abc(0));
    await settled();
    await clock.advanceBy(999);
    deliver(1, abc(1));
    await settled();
    await clock.advanceBy(999);
    await settled();
    expect(lines).toEqual([]);
    await clock.advanceBy(1);

    expect(lines).toMatchObject([
      { text: expect.stringMatching(/2 of 3 chunks of its message came, and no further one within 1000 ms/) },
    ]);
    expect(all('ACK')).toEqual([]);
  });

  it('is not given up while the broker may not send the next chunk', async () => {
    const { deliver, settled, clock, lines, subscription } = await start({ ...options, prefetch: 2 });
    await settled();
    subscription.pause();
    deliver(0, abc(0));
    deliver(1, section('x'));
    await settled();
    await clock.advanceBy(10_000);
    expect(lines).toEqual([]);
    subscription.resume();
    await settled();
    deliver(2, abc(1));
    deliver(3, abc(2));

    expect(await receiveTexts(subscription, 2)).toEqual(['x', 'aabbbc']);
  });

  it('is acknowledged when it is the repetition of a message that is', async () => {
    const { deliver, subscription, server, clock, settled, lines, all } = await start(options);
    [0, 1, 2].forEach((index) => deliver(index, abc(index)));
    await subscription.acknowledge([(await subscription.receive(never))!.id]);
    deliver(3, abc(0));
    deliver(4, abc(1));
    await settled();
    await clock.advanceBy(1_000);
    await server.command('ACK', 2);

    expect(entries(all('ACK')[1]?.messageId)).toEqual([3, 4]);
    expect(lines).toEqual([]);
  });

  it('waits for nothing any more after close', async () => {
    const { deliver, settled, clock, subscription } = await start(options);
    deliver(0, abc(0));
    await settled();
    expect(clock.pendingTimers).toContain(1_000);
    await subscription.close();

    expect(clock.pendingTimers).not.toContain(1_000);
  });
});

describe('chunks that say what cannot be', () => {
  it.each([
    [
      'of a message above the limit',
      { totalChunkMsgSize: 2 ** 31 - 1 },
      /2147483647 bytes, "maxChunkedMessageBytes" is/,
    ],
    [
      'that inflates above the limit',
      { compression: 2, uncompressedSize: 2 ** 32 - 1 },
      /4294967295 bytes, "maxChunked/,
    ],
    ['that are negative in all', { totalChunkMsgSize: -5 }, /of -5 bytes in all, and has 2 itself/],
    ['that are less in all than one of them', { totalChunkMsgSize: 1 }, /of 1 bytes in all, and has 2 itself/],
    ['too many', { numChunksFromMsg: 2 ** 31 - 1 }, /in 2147483647 chunks, at most 10000/],
    ['with a number outside', { chunkId: 3 }, /chunk 3 of a message in 3 chunks, at most/],
    ['with a negative number', { chunkId: -1 }, /chunk -1 of a message in 3 chunks, at most/],
    ['without a uuid', { uuid: '' }, /that has no uuid/],
  ])('%s stay unacknowledged, are told, and give their permit back', async (_, more, reason) => {
    const { deliver, subscription, granted, lines, all, settled } = await startSubscription({ prefetch: 1 });
    deliver(0, abc(0, more));
    deliver(1, section('next'));

    expect(textOf(await subscription.receive(never))).toBe('next');
    await settled();
    expect(lines).toMatchObject([{ level: 'error', text: reason }]);
    expect(all('ACK')).toEqual([]);
    expect(granted()).toBe(3);
  });

  it.each([
    ['more', ['aa', 'bbb', 'cccc'], /more than the 6 bytes/],
    ['less', ['aa', 'bbb', ''], /less than the 6 bytes/],
  ])('%s than they say to be are not joined', async (_, pieces, reason) => {
    const { deliver, subscription, lines } = await startSubscription();
    [0, 1, 2].forEach((index) => deliver(index, chunk('u', pieces, index, { totalChunkMsgSize: 6 })));
    deliver(3, section('next'));

    expect(textOf(await subscription.receive(never))).toBe('next');
    expect(lines).toMatchObject([{ level: 'error', text: reason }]);
  });

  it('another number of chunks than before begins another message', async () => {
    const { deliver, subscription } = await startSubscription();
    deliver(0, abc(0));
    deliver(1, chunk('u', ['x', 'y'], 0));
    deliver(2, chunk('u', ['x', 'y'], 1));

    expect(textOf(await subscription.receive(never))).toBe('xy');
  });
});

it('an id whose first chunk is no entry is refused', async () => {
  const { subscription } = await startSubscription();
  const id = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC };
  const firstChunk = { ledgerId: 2 ** 60, entryId: 0, partition: -1 };

  await expect(subscription.acknowledge([{ ...id, firstChunk }])).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
});

describe('options of a consumer', () => {
  it('are refused when they cannot be met, all at once', async () => {
    const started = startSubscription({
      maxIncompleteChunkedMessages: 0,
      expireIncompleteChunksMs: 0,
      maxChunkedMessageBytes: 1.5,
    });

    await expect(started).rejects.toThrow(
      /"maxIncompleteChunkedMessages" must.*"expireIncompleteChunksMs" must.*"maxChunkedMessageBytes" must/s,
    );
  });
});

it('ids with and without the first chunk are the same message', () => {
  const id = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' };
  const chunked: ReceivedMessage['id'] = { ...id, firstChunk: { ledgerId: 1, entryId: 0, partition: -1 } };

  expect(sameMessageId(id, chunked)).toBe(true);
});
