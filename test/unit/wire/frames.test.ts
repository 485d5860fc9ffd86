// Frames against the byte layout of the protocol, against hostile bytes, and against every way a stream can be split.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BatchWriter, decodeBatch } from '../../../src/transports/wire/protocol/batch.js';
import { crc32c } from '../../../src/transports/wire/protocol/crc32c.js';
import { FrameReader } from '../../../src/transports/wire/protocol/frame-reader.js';
import { decodeEntry, decodeFrame, encodeCommand, encodeSend } from '../../../src/transports/wire/protocol/frames.js';
import { WireFormatError } from '../../../src/transports/wire/protocol/wire-format-error.js';

const metadata = { producerName: 'p', sequenceId: 3, publishTime: 1_700_000_000_000 };
const send = { producerId: 1, sequenceId: 3 };

/** A frame as it looks to the one who receives it. */
const received = (frame: Buffer) => decodeFrame(frame.subarray(4));

describe('frames', () => {
  it('a ping is the eleven bytes that brokers expect, empty body included', () => {
    expect(encodeCommand('PING', {}).toString('hex')).toBe('000000090000000508129201' + '00');
  });

  it('CRC-32C gives the value of RFC 3720 for its test vectors', () => {
    expect(crc32c(Buffer.alloc(32)).toString(16)).toBe('8a9136aa');
    expect(crc32c(Buffer.alloc(32, 0xff)).toString(16)).toBe('62a8ab43');
    expect(crc32c(Buffer.from('123456789')).toString(16)).toBe('e3069283');
  });

  it('CRC-32C is the same by any number of bytes at a time, wherever they begin', () => {
    const bitByBit = (bytes: Uint8Array): number => {
      let crc = -1;
      for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
      }
      return ~crc >>> 0;
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(40), (bytes, start) => {
        const from = Math.min(start, bytes.length);
        expect(crc32c(bytes, from)).toBe(bitByBit(bytes.subarray(from)));
      }),
    );
    const many = Buffer.from(Array.from({ length: 2_000 }, (_, index) => (index * 7) & 0xff));
    for (let start = 0; start < 20; start++) expect(crc32c(many, start)).toBe(bitByBit(many.subarray(start)));
  });

  it('an entry comes back as it was sent', () => {
    const { command, payload } = received(encodeSend(send, metadata, Buffer.from('hello')));

    expect(command).toEqual({ name: 'SEND', body: send });
    expect(decodeEntry(payload)).toEqual({ metadata, payload: Buffer.from('hello') });
  });

  it('an entry with one changed bit behind the checksum is refused with the name of the fault', () => {
    const frame = encodeSend(send, metadata, Buffer.from('hello'));
    const last = frame.length - 1;
    frame[last] = (frame[last] ?? 0) ^ 1;

    expect(decodeEntry(received(frame).payload)).toMatchObject({
      validationError: 2,
      reason: expect.stringContaining('checksum') as unknown,
    });
  });

  it('an entry without a checksum is taken', () => {
    const { payload } = received(encodeSend(send, metadata, Buffer.from('hello')));

    expect(decodeEntry(payload.subarray(6))).toMatchObject({ payload: Buffer.from('hello') });
  });

  it("the broker's metadata before the checksum is passed over", () => {
    const { payload } = received(encodeSend(send, metadata, Buffer.from('hello')));
    const before = Buffer.from('0e02000000020801', 'hex');

    expect(decodeEntry(Buffer.concat([before, payload]))).toMatchObject({ payload: Buffer.from('hello') });
  });

  it('2^64-1 is read as -1 and written as the same', () => {
    const frame = encodeCommand('CLOSE_CONSUMER', { consumerId: 1, requestId: -1 });

    expect(frame.toString('hex')).toContain('10ffffffffffffffffff01');
    expect(received(frame).command?.body).toEqual({ consumerId: 1, requestId: -1 });
  });

  it('a number above 2^53-1 is refused by the name of its field', () => {
    const frame = encodeCommand('FLOW', { consumerId: 2 ** 60, messagePermits: 1 });

    expect(() => received(frame)).toThrow('FLOW.consumerId: a number above 2^53-1');
  });

  it('a missing required field is named', () => {
    const frame = encodeCommand('FLOW', { consumerId: 1 } as never);

    expect(() => received(frame)).toThrow('FLOW has no messagePermits');
  });

  it('an unknown command is no error', () => {
    const frame = encodeCommand('PING', {});
    frame[9] = 127;

    expect(received(frame).command).toBeUndefined();
  });
});

describe('frame reader', () => {
  const frames = [
    encodeCommand('PING', {}),
    encodeSend(send, metadata, Buffer.alloc(300, 7)),
    encodeCommand('FLOW', { consumerId: 1, messagePermits: 1 }),
    encodeSend(send, metadata, Buffer.alloc(0)),
  ];
  const stream = Buffer.concat(frames);

  it('finds the same frames wherever the stream is split', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), (sizes) => {
        const found: string[] = [];
        const reader = new FrameReader(10_000, (frame) => found.push(frame.toString('hex')));
        for (let at = 0, i = 0; at < stream.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          reader.push(stream.subarray(at, at + size));
          at += size;
        }
        expect(found).toEqual(frames.map((frame) => frame.subarray(4).toString('hex')));
      }),
    );
  });

  it.each([0, 3, 10_001, 0xffffffff])('a frame that claims %i bytes is refused before memory is taken', (size) => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(size);
    const reader = new FrameReader(10_000, () => undefined);

    expect(() => reader.push(head)).toThrow(`a frame of ${size} bytes, allowed are 4 to 10000`);
  });
});

describe('hostile bytes', () => {
  /** Runs `decode`; anything but a result or a WireFormatError is a crash. */
  function survives(decode: () => unknown): void {
    try {
      decode();
    } catch (error) {
      expect(error).toBeInstanceOf(WireFormatError);
    }
  }

  it('random frames are read or refused by name', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => survives(() => decodeFrame(Buffer.from(bytes)))),
    );
  });

  it('frames with changed bytes are read or refused by name', () => {
    const frame = encodeSend(send, { ...metadata, properties: [{ key: '__proto__', value: 'x' }] }, Buffer.from('abc'));
    const change = fc.tuple(fc.nat(frame.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const changed = Buffer.from(frame);
        for (const [at, value] of changes) changed[at] = value;
        survives(() => decodeEntry(received(changed).payload));
      }),
    );
  });

  it('random batches are read or refused by name', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer(), (bytes, count) =>
        survives(() => decodeBatch(Buffer.from(bytes), count)),
      ),
    );
  });

  it('a batch that claims two thousand million messages makes no list', () => {
    expect(() => decodeBatch(Buffer.alloc(100), 2 ** 31 - 1)).toThrow('a batch of 2147483647 messages in 100 bytes');
  });
});

describe('batches', () => {
  it('messages come back with their places, keys and payloads', () => {
    const batch = new BatchWriter();
    batch.add({ payloadSize: 2, partitionKey: 'ключ', sequenceId: 1 }, Buffer.from('ab'));
    batch.add({ payloadSize: 0, nullValue: true }, Buffer.alloc(0));

    expect(decodeBatch(batch.view(), 2)).toEqual([
      { index: 0, metadata: { payloadSize: 2, partitionKey: 'ключ', sequenceId: 1 }, start: 18, end: 20 },
      { index: 1, metadata: { payloadSize: 0, nullValue: true }, start: 28, end: 28 },
    ]);
  });

  it('a compacted batch keeps the places that the metadata names', () => {
    const batch = new BatchWriter();
    batch.add({ payloadSize: 1 }, Buffer.from('c'));

    expect(decodeBatch(batch.view(), 5, [2]).map(({ index }) => index)).toEqual([2]);
  });
});
