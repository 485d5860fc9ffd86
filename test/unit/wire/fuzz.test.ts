// Hostile bytes, from single frames up to a whole client: nothing crashes, memory stays bounded, the error says what
// was wrong, and other topics go on. The seed of a failing run is in its message.
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DecodedEntry } from '../../../src/transports/wire/entry-decoder.js';
import { decodeArrival } from '../../../src/transports/wire/entry-decoder.js';
import { loadCodec } from '../../../src/transports/wire/protocol/compression.js';
import { FrameReader } from '../../../src/transports/wire/protocol/frame-reader.js';
import { decodeFrame, encodeCommand, encodeSend } from '../../../src/transports/wire/protocol/frames.js';
import type { MessageMetadata } from '../../../src/transports/wire/protocol/message-metadata.js';
import { WireFormatError } from '../../../src/transports/wire/protocol/wire-format-error.js';
import { batchSection, receiveTexts, section, startSubscription } from '../../support/scripted-consumer.js';
import { messageFrame, sectionOf } from '../../support/wire-server.js';

const MAX_FRAME = 10_000;
const PLACE = {
  topic: 't',
  partition: -1,
  redeliveryCount: 0,
  connection: 1,
  maxMessageBytes: 100_000,
  maxChunkedMessageBytes: 100_000,
};
const MESSAGE = { consumerId: 1, messageId: { ledgerId: 1, entryId: 0 } };

/** Undefined when all of it was read; the refusal otherwise. Anything else that is thrown is a crash. */
function refusal(read: () => unknown): WireFormatError | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof WireFormatError) return error;
    throw error;
  }
}

/** Reads a stream that comes in pieces of these sizes, as a connection does. */
function readStream(stream: Buffer, sizes: readonly number[]): string[] {
  const found: string[] = [];
  const reader = new FrameReader(MAX_FRAME, (frame) => {
    const { command, payload } = decodeFrame(frame);
    found.push(`${command?.name ?? 'unknown'} ${payload.length}`);
  });
  for (let at = 0, i = 0; at < stream.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    reader.push(stream.subarray(at, at + size));
    at += size;
  }
  return found;
}

const sizes = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 20 });
const frame = fc.oneof(
  fc.constant(encodeCommand('PING', {})),
  fc.record({ consumerId: fc.nat(), messagePermits: fc.nat() }).map((body) => encodeCommand('FLOW', body)),
  fc
    .uint8Array({ maxLength: 200 })
    .map((bytes) => messageFrame(MESSAGE, section(Buffer.from(bytes).toString('latin1')))),
  fc.string().map((message) => encodeCommand('ERROR', { requestId: 1, error: 1, message })),
);
const frames = fc.array(frame, { minLength: 1, maxLength: 8 }).map((list) => Buffer.concat(list));

describe('a stream of frames', () => {
  it('is read the same however it is split', () => {
    fc.assert(
      fc.property(frames, sizes, (stream, split) => {
        expect(readStream(stream, split)).toEqual(readStream(stream, [stream.length]));
      }),
      { numRuns: 300 },
    );
  });

  it('that is cut off gives its whole frames and waits for the rest', () => {
    fc.assert(
      fc.property(frames, sizes, fc.nat(), (stream, split, cut) => {
        const whole = readStream(stream, [stream.length]);
        const part = readStream(stream.subarray(0, cut % stream.length), split);
        expect(whole.slice(0, part.length)).toEqual(part);
        expect(part.length).toBeLessThan(whole.length);
      }),
      { numRuns: 300 },
    );
  });

  it('with any bytes changed is read or refused, with a word on what was wrong', () => {
    const change = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(frames, sizes, fc.array(change, { minLength: 1, maxLength: 6 }), (stream, split, changes) => {
        const changed = Buffer.from(stream);
        for (const [at, value] of changes) changed[at % changed.length] = value;
        const error = refusal(() => readStream(changed, split));
        // Names the frame, or the command and where it has one the field.
        if (error !== undefined) expect(error.message).toMatch(/^a (frame|command)\b|^\w+(\.[\w ]+)*: | has no /);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of noise is refused or waits, and never takes more memory than one frame', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 4, maxLength: 300 }), sizes, (bytes, split) => {
        const before = process.memoryUsage().arrayBuffers;
        refusal(() => readStream(Buffer.from(bytes), split));
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20 * MAX_FRAME);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['a command longer than its frame', '00000008000000ff08121a00', /a command of 255 bytes in a frame of 8/],
    ['a length beyond the end', '0000000d00000009080b5a20087f10ff7f', /length of 32 with 5 bytes left/],
    ['a number without an end', '0000000f0000000b' + '08ffffffffffffffffffff', /number of more than 10 bytes/],
    ['no command number', '0000000800000004' + '12000000', /a command: it does not start with its number/],
    ['an absurd size', 'ffffffff', /a frame of 4294967295 bytes, allowed are 4 to 10000/],
  ])('with %s is refused by name', (_, hex, reason) => {
    expect(refusal(() => readStream(Buffer.from(hex, 'hex'), [3]))?.message).toMatch(reason);
  });
});

describe('an entry', () => {
  const CODECS = { lz4: 1, zlib: 2, zstd: 3, snappy: 4 } as const;
  beforeAll(async () => {
    for (const number of Object.values(CODECS)) await loadCodec(number);
  });
  const decode = (bytes: Buffer): DecodedEntry => decodeArrival(MESSAGE, bytes, PLACE) as DecodedEntry;
  const entryOf = (payload: Uint8Array, more: Partial<MessageMetadata>): Buffer =>
    sectionOf(
      encodeSend(
        { producerId: 1, sequenceId: 0 },
        { producerName: 'p', sequenceId: 0, publishTime: 1, ...more },
        payload,
      ),
    );

  it('of noise behind a right checksum is decoded, or unreadable with a reason', () => {
    const metadata = fc.record(
      {
        numMessagesInBatch: fc.oneof(fc.integer({ min: -1, max: 20 }), fc.integer()),
        compression: fc.integer({ min: 0, max: 4 }),
        uncompressedSize: fc.oneof(fc.nat(2_000), fc.nat()),
        compactedBatchIndexes: fc.array(fc.integer({ min: -2, max: 30 }), { minLength: 1, maxLength: 5 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), metadata, (payload, more) => {
        const decoded = decode(entryOf(payload, more));
        expect(['messages', 'unreadable']).toContain(decoded.kind);
        if (decoded.kind === 'unreadable') expect(decoded.reason).not.toBe('');
        expect(decoded.charged).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 2_000 },
    );
  });

  it('cut off anywhere, or with bytes changed, is corrupt or as it was', () => {
    const good = batchSection(['a', 'bb', 'ccc']);
    const change = fc.record({ cut: fc.nat(good.length), at: fc.nat(good.length - 1), value: fc.nat(255) });
    fc.assert(
      fc.property(change, ({ cut, at, value }) => {
        const changed = Buffer.from(good.subarray(0, cut));
        if (at < changed.length) changed[at] = value;
        const decoded = decode(changed);
        const isUnchanged = changed.equals(good);
        if (isUnchanged) expect(decoded.kind).toBe('messages');
        else if (at > 5) expect(decoded.kind).toBe('corrupt');
      }),
      { numRuns: 1_000 },
    );
  });

  it.each(Object.entries(CODECS))('of noise compressed with %s never takes the process down', (_, compression) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(100_000), (payload, uncompressedSize) => {
        expect(['messages', 'unreadable']).toContain(decode(entryOf(payload, { compression, uncompressedSize })).kind);
      }),
      { numRuns: 300 },
    );
  });

  it('of snappy with a literal of a negative length is refused, not read without end', () => {
    // Five bytes of result; a literal whose length of four bytes leads back to its own tag.
    const circle = Buffer.from([5, 0xfc, 0xfa, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

    expect(decode(entryOf(circle, { compression: CODECS.snappy, uncompressedSize: 5 }))).toMatchObject({
      kind: 'unreadable',
      reason: expect.stringContaining('longer than what is left') as string,
    });
  });

  it('that inflates to more than its producer wrote is refused', () => {
    const bomb = deflateSync(Buffer.alloc(50_000_000));

    expect(decode(entryOf(bomb, { compression: CODECS.zlib, uncompressedSize: 1_000 }))).toMatchObject({
      kind: 'unreadable',
      reason: expect.stringContaining('cannot be decompressed') as string,
    });
  });

  it('of zstd that claims a terabyte takes no memory', () => {
    const claim = Buffer.alloc(30);
    claim.writeUInt32LE(0xfd2fb528, 0);
    claim[4] = 0xe0; // One segment, its size in eight bytes.
    claim.writeBigUInt64LE(2n ** 40n, 5);
    const before = process.memoryUsage().rss;

    expect(decode(entryOf(claim, { compression: CODECS.zstd, uncompressedSize: 100 })).kind).toBe('unreadable');
    expect(process.memoryUsage().rss - before).toBeLessThan(50_000_000);
  });

  it('that claims two thousand million messages is refused, and charged as the broker charges it', () => {
    expect(decode(entryOf(Buffer.alloc(10), { numMessagesInBatch: 2 ** 31 - 1 }))).toMatchObject({
      kind: 'unreadable',
      charged: 2 ** 31 - 1,
      reason: 'a batch of 2147483647 messages',
    });
  });
});

describe('a client', () => {
  it('goes on with its other messages after any entry that is noise', async () => {
    const { deliver, subscription } = await startSubscription({ prefetch: 100 });
    const noise = fc.sample(fc.uint8Array({ minLength: 1, maxLength: 100 }), { numRuns: 50, seed: 7 });
    noise.forEach((bytes, index) => deliver(index, Buffer.from(bytes)));
    deliver(1_000, section('still here'));

    expect(await receiveTexts(subscription, 1)).toEqual(['still here']);
  });

  it('goes on over new connections after any frame that is noise, whatever way it is split', async () => {
    const { server, deliver, subscription } = await startSubscription();
    const noise = fc.sample(fc.uint8Array({ minLength: 8, maxLength: 60 }), { numRuns: 20, seed: 11 });
    for (const [round, bytes] of noise.entries()) {
      const hostile = Buffer.from(bytes);
      hostile.writeUInt32BE(2 ** 31 + round, 0);
      server.peers.at(-1)?.raw(hostile.subarray(0, 3));
      server.peers.at(-1)?.raw(hostile.subarray(3));
      await server.command('FLOW', round + 2);
    }
    deliver(0, section('still here'));

    expect(await receiveTexts(subscription, 1)).toEqual(['still here']);
  });
});
