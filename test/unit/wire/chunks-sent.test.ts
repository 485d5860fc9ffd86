// Messages in chunks, as a publisher sends them to a scripted server: how they are cut, their receipts, refusals and losses.
import { describe, expect, it, vi } from 'vitest';
import { decodeEntry } from '../../../src/transports/wire/protocol/frames.js';
import type { Entry } from '../../../src/transports/wire/protocol/frames.js';
import { decompress, loadCodec } from '../../../src/transports/wire/protocol/compression.js';
import type { WireOptions, WirePublisherOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import { seeded } from '../../support/seeded.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';
import type { Peer, Script } from '../../support/wire-server.js';
import { PATIENCE_MS } from './wire-consumer-kit.js';
import { closedAfterTest } from '../../support/closed-after-test.js';

const TOPIC = 'persistent://public/default/t';
const CHUNKING: WirePublisherOptions = { batching: false, chunking: true };
/** What the scripted server takes for one entry. */
const LIMIT = 100_000;
const random = seeded(7);
async function start(script: Script = {}, options: Partial<WireOptions> = {}) {
  script.SEND ??= storedInOrder();
  const server = closedAfterTest(await WireServer.start(script));
  const client = closedAfterTest(
    new WireClient({ serviceUrl: server.url, random: () => 0.5, reconnectMinMs: 1, ...options }),
  );
  return { server, client, chunks: () => server.sections.map((one) => decodeEntry(one) as Entry) };
}

interface Send {
  readonly producerId: number;
  readonly sequenceId: number;
}

const receipt = (peer: Peer, { producerId, sequenceId }: Send, entryId: number): void =>
  peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: entryId < 0 ? -1 : 7, entryId } });

/** Each entry gets the next place. */
function storedInOrder(): (send: Send, peer: Peer) => void {
  let entryId = 0;
  return (send, peer) => receipt(peer, send, entryId++);
}

/** Bytes that no codec makes smaller. */
const noise = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, () => random() * 256));
const message = (bytes: number, more: object = {}) => ({ payload: noise(bytes), properties: {}, ...more });
const joined = (entries: readonly Entry[]): Buffer => Buffer.concat(entries.map(({ payload }) => payload));
const count = (server: WireServer, name: string) => server.received.filter((command) => command.name === name).length;

describe('a message that is larger than an entry may be', () => {
  it('goes out in chunks with the same metadata, and its id is that of the last chunk and of the first', async () => {
    const { client, server, chunks } = await start();
    const publisher = await client.publisher(TOPIC, CHUNKING);
    const large = message(250_000, { key: 'k', properties: { a: 'b' }, eventTimeMs: 5 });

    const id = await publisher.publish(large, 4);

    const sends = server.received.filter(({ name }) => name === 'SEND').map(({ body }) => body);
    expect(sends).toMatchObject([0, 1, 2].map(() => ({ sequenceId: 4, isChunk: true })));
    const whole = { uuid: 'scripted-1-4', numChunksFromMsg: 3, totalChunkMsgSize: 250_000, sequenceId: 4 };
    const fields = { ...whole, partitionKey: 'k', properties: [{ key: 'a', value: 'b' }], eventTime: 5 };
    expect(chunks().map(({ metadata }) => metadata)).toMatchObject(
      [0, 1, 2].map((chunkId) => ({ ...fields, chunkId })),
    );
    expect(joined(chunks()).equals(large.payload)).toBe(true);
    expect(id).toEqual({
      ...{ ledgerId: 7, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC },
      firstChunk: { ledgerId: 7, entryId: 0, partition: -1 },
    });
  });

  it.each([0, 1, 1_000, 30_000])('leaves 10 KiB free below the limit beside %i bytes of properties', async (bytes) => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, CHUNKING);

    await publisher.publish(message(LIMIT, { properties: { filler: 'x'.repeat(bytes) } }), 0);

    expect(Math.max(...server.sections.map(({ length }) => length))).toBeLessThanOrEqual(LIMIT - 10 * 1024);
    expect(Math.max(...server.sections.map(({ length }) => length))).toBeGreaterThan(LIMIT - 11 * 1024);
  });

  it('is a plain entry when it fits', async () => {
    const { client, chunks } = await start();
    const publisher = await client.publisher(TOPIC, CHUNKING);

    const id = await publisher.publish(message(80_000), 0);

    expect(chunks()).toHaveLength(1);
    expect(chunks()[0]?.metadata).not.toHaveProperty('uuid');
    expect(id).not.toHaveProperty('firstChunk');
  });

  it('is compressed first, then cut', async () => {
    const { client, chunks } = await start();
    const publisher = await client.publisher(TOPIC, { ...CHUNKING, compression: 'zlib' });
    const half = noise(150_000);
    const payload = Buffer.concat([half, Buffer.alloc(100_000)]);

    await publisher.publish({ payload, properties: {} }, 0);

    const { metadata } = chunks()[0]!;
    expect(metadata).toMatchObject({ numChunksFromMsg: 2, compression: 2, uncompressedSize: 250_000 });
    expect(metadata.totalChunkMsgSize).toBe(joined(chunks()).length);
    expect(decompress(await loadCodec(2), joined(chunks()), 250_000).equals(payload)).toBe(true);
  });

  it('is cut in two when only compression makes it small: readers refuse such an entry', async () => {
    const { client, chunks } = await start();
    const publisher = await client.publisher(TOPIC, { ...CHUNKING, compression: 'zlib' });

    await publisher.publish({ payload: Buffer.alloc(250_000), properties: {} }, 0);

    expect(chunks().map(({ metadata }) => metadata.numChunksFromMsg)).toEqual([2, 2]);
    expect(decompress(await loadCodec(2), joined(chunks()), 250_000).equals(Buffer.alloc(250_000))).toBe(true);
  });

  it('is cut into chunks of the size asked for', async () => {
    const { client, chunks } = await start();
    const publisher = await client.publisher(TOPIC, { ...CHUNKING, maxChunkBytes: 1_024 });

    await publisher.publish(message(2_500), 0);

    expect(chunks().map(({ payload }) => payload.length)).toEqual([1_024, 1_024, 452]);
  });

  it('is refused when its properties leave no room for the payload', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, CHUNKING);
    const full = message(LIMIT, { properties: { filler: 'x'.repeat(60_000) } });

    await expect(publisher.publish(full, 0)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE', retriable: false });
    expect(count(server, 'SEND')).toBe(0);
  });

  it('is refused without chunking, as before', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC, { batching: false });

    await expect(publisher.publish(message(250_000), 0)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
  });

  it('is what it was at the call, whatever its publisher does to the bytes', async () => {
    const { client, chunks } = await start();
    const publisher = await client.publisher(TOPIC, CHUNKING);
    const { payload, properties } = message(250_000);
    const before = Buffer.from(payload);

    const published = publisher.publish({ payload, properties }, 0);
    payload.fill(0);
    await published;

    expect(joined(chunks()).equals(before)).toBe(true);
  });

  it('counts in the limit in bytes: the next one waits', async () => {
    const sends: Send[] = [];
    const script: Script = { SEND: (send) => void sends.push(send) };
    const { client, server } = await start(script, { maxPendingBytes: 300_000 });
    const publisher = await client.publisher(TOPIC, CHUNKING);
    const first = publisher.publish(message(250_000), 0);
    const second = publisher.publish(message(250_000), 1);
    await server.command('SEND', 3);
    server.peers[0]?.send('PING', {});
    await server.command('PONG');
    expect(sends.map(({ sequenceId }) => sequenceId)).toEqual([0, 0, 0]);
    sends.slice(0, 3).forEach((send, entryId) => receipt(server.peers[0]!, send, entryId));
    await server.command('SEND', 6);
    sends.slice(3).forEach((send, entryId) => receipt(server.peers[0]!, send, 3 + entryId));

    expect([await first, await second].map(({ entryId }) => entryId)).toEqual([2, 5]);
  });
});

describe('receipts of chunks', () => {
  it('are needed for each of them', async () => {
    const sends: Send[] = [];
    const { client, server } = await start({ SEND: (send) => void sends.push(send) });
    const publisher = await client.publisher(TOPIC, CHUNKING);
    let settled = false;
    const published = publisher.publish(message(250_000), 0).finally(() => (settled = true));
    await server.command('SEND', 3);
    sends.slice(0, 2).forEach((send, entryId) => receipt(server.peers[0]!, send, entryId));
    server.peers[0]?.send('PING', {});
    await server.command('PONG');
    expect(settled).toBe(false);
    receipt(server.peers[0]!, sends[2]!, 2);

    await expect(published).resolves.toMatchObject({ entryId: 2, firstChunk: { entryId: 0 } });
  });

  it('that did not come: these chunks are sent again in order, unchanged, before what follows', async () => {
    let connections = 0;
    let entryId = 0;
    const { client, server } = await start({
      CONNECT: (_, peer) => {
        connections += 1;
        peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 19, maxMessageSize: LIMIT });
      },
      SEND: (send, peer) => {
        // The first chunk is stored and receipted, then the connection goes with the last message.
        if (connections > 1 || entryId === 0) receipt(peer, send, entryId++);
        else if (send.sequenceId === 1) peer.cut();
      },
    });
    const publisher = await client.publisher(TOPIC, CHUNKING);

    const published = [publisher.publish(message(250_000), 0), publisher.publish(message(10), 1)];
    const ids = await Promise.all(published);

    expect(server.sections).toHaveLength(4 + 3);
    const again = server.sections.slice(4).map((section, index) => section.equals(server.sections[1 + index]!));
    expect(again).toEqual([true, true, true]);
    expect(ids).toMatchObject([{ entryId: 2, firstChunk: { entryId: 0 } }, { entryId: 3 }]);
  });

  it('of a broker that had the last chunk before: the message is stored, at a place that is not known', async () => {
    const sends: Send[] = [];
    const { client } = await start({
      SEND: (send, peer) => {
        if (sends.push(send) < 3) return;
        // A broker says so at once, ahead of receipts for what it is still storing.
        receipt(peer, send, -1);
        receipt(peer, send, 5);
        receipt(peer, send, 6);
      },
    });
    const publisher = await client.publisher(TOPIC, CHUNKING);

    const id = await publisher.publish(message(250_000), 0);

    expect(id).toMatchObject({ entryId: -1 });
  });
});

describe('a chunk that fails', () => {
  it('fails its message, which then takes the room of one message no more', async () => {
    const sends: Send[] = [];
    const { client, server } = await start({
      SEND: (send, peer) => {
        sends.push(send);
        if (sends.length === 3) peer.send('SEND_ERROR', { ...send, error: 22, message: 'no' });
      },
    });
    const publisher = await client.publisher(TOPIC, { ...CHUNKING, maxPendingMessages: 1 });
    const failed = expect(publisher.publish(message(250_000), 0)).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
    const [next, last] = [1, 2].map((id) => publisher.publish(message(10), id));
    await failed;
    await server.command('SEND', 4);
    server.peers[0]?.send('PING', {});
    await server.command('PONG');
    expect(sends.map(({ sequenceId }) => sequenceId)).toEqual([0, 0, 0, 1]);
    receipt(server.peers[0]!, sends[3]!, 9);
    receipt(server.peers[0]!, { ...(await server.command('SEND', 5)) }, 10);

    expect([(await next)?.entryId, (await last)?.entryId]).toEqual([9, 10]);
  });

  it('by the send timeout fails the whole, and receipts that come too late are not those of the next attempt', async () => {
    const sends: Send[] = [];
    const clock = new SocketClock();
    const script: Script = { SEND: (send) => void sends.push(send) };
    let answerClose: () => void = () => undefined;
    script.CLOSE_PRODUCER = ({ requestId }, peer) => (answerClose = () => peer.send('SUCCESS', { requestId }));
    const { client, server } = await start(script, { clock });
    const publisher = await client.publisher(TOPIC, { ...CHUNKING, sendTimeoutMs: 1_000, maxPendingMessages: 1 });
    const large = message(250_000);
    const first = expect(publisher.publish(large, 0)).rejects.toMatchObject({
      code: 'CALL_TIMED_OUT',
      retriable: true,
    });
    await server.command('SEND', 3);
    await clock.advanceBy(1_000);
    await first;
    await server.command('CLOSE_PRODUCER');

    const [again, further] = [0, 1].map((id) => publisher.publish(large, id));
    // The broker tells of the first attempt before it answers the close.
    sends.slice(0, 3).forEach((send, entryId) => receipt(server.peers[0]!, send, entryId));
    script.CLOSE_PRODUCER = ({ requestId }, peer) => peer.send('SUCCESS', { requestId });
    answerClose();
    await vi.waitFor(
      async () => {
        await clock.advanceBy(1);
        expect(sends).toHaveLength(6);
      },
      { timeout: PATIENCE_MS, interval: 5 },
    );
    server.peers[0]?.send('PING', {});
    await server.command('PONG');
    expect(sends).toHaveLength(6);
    sends.slice(3).forEach((send, entryId) => receipt(server.peers[0]!, send, 3 + entryId));

    await expect(again).resolves.toMatchObject({ entryId: 5, firstChunk: { entryId: 3 } });
    await server.command('SEND', 9);
    sends.slice(6).forEach((send, entryId) => receipt(server.peers[0]!, send, 6 + entryId));
    await expect(further).resolves.toMatchObject({ entryId: 8 });
  });
});

describe('options', () => {
  it.each([
    [{ chunking: true }, /"chunking" needs "batching: false"/],
    [{ chunking: true, batching: {} }, /"chunking" needs "batching: false"/],
    [{ batching: false, maxChunkBytes: 5_000 }, /"maxChunkBytes" needs "chunking: true"/],
    [{ batching: false, chunking: true, maxChunkBytes: 1_023 }, /"maxChunkBytes" must be at least 1024/],
    [{ batching: false, chunking: 'yes' }, /"chunking" must be/],
  ])('%j is refused', async (options, reason) => {
    const { client } = await start();

    await expect(client.publisher(TOPIC, options as WirePublisherOptions)).rejects.toThrow(reason);
  });

  it('chunking is refused on a topic that is not persistent', async () => {
    const { client } = await start();

    await expect(client.publisher('non-persistent://public/default/t', CHUNKING)).rejects.toThrow(
      /"chunking" needs a persistent topic/,
    );
  });
});
