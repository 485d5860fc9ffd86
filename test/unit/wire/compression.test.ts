// Every codec: stored forms that other clients wrote, round trips, and payloads that claim too little or too much.
import { describe, expect, it } from 'vitest';
import { decompress, loadCodec, zstdContentSize } from '../../../src/transports/wire/protocol/compression.js';
import { COMPRESSION_NUMBERS } from '../../../src/transports/wire/protocol/message-metadata.js';

const { none: _none, ...codecs } = COMPRESSION_NUMBERS;
const text = Buffer.from('pulsar '.repeat(1_000) + 'end');

describe.each(Object.entries(codecs))('%s', (_name, number) => {
  it('gives back what it took', async () => {
    const codec = await loadCodec(number);
    const compressed = codec.compress(text);

    expect(compressed.length).toBeLessThan(text.length / 5);
    expect(decompress(codec, compressed, text.length).equals(text)).toBe(true);
  });

  it('takes an empty payload', async () => {
    const codec = await loadCodec(number);

    expect(decompress(codec, codec.compress(Buffer.alloc(0)), 0)).toHaveLength(0);
  });

  it.each([10, 1_000_000])('refuses a payload that claims %i bytes', async (claimed) => {
    const codec = await loadCodec(number);
    const compressed = codec.compress(text);

    expect(() => decompress(codec, compressed, claimed)).toThrow(/decompress/);
  });

  it('refuses bytes that it never wrote', async () => {
    const codec = await loadCodec(number);

    expect(() => decompress(codec, Buffer.from('ff00ff00ff00ff00', 'hex'), 100)).toThrow(/decompress/);
  });
});

it('LZ4 is a raw block, without a frame or a size before it', async () => {
  const codec = await loadCodec(COMPRESSION_NUMBERS.lz4);

  expect(Buffer.from(codec.compress(Buffer.from('abc'))).toString('hex')).toBe('30616263');
});

it('Snappy is a raw block with its length first', async () => {
  const codec = await loadCodec(COMPRESSION_NUMBERS.snappy);

  expect(Buffer.from(codec.compress(Buffer.from('abc'))).toString('hex')).toBe('0308616263');
});

describe('the size that a zstd frame claims', () => {
  const frame = (descriptor: number, rest: string) =>
    Buffer.concat([Buffer.from('28b52ffd', 'hex'), Buffer.from([descriptor]), Buffer.from(rest, 'hex')]);

  it.each([
    ['one byte', frame(0x20, '07'), 7n],
    ['two bytes, which begin at 256', frame(0x40, '000100'), 257n],
    ['four bytes', frame(0x80, '0000000080'), 2_147_483_648n],
    ['eight bytes', frame(0xc0, '00ffffffffffffff7f'), 9_223_372_036_854_775_807n],
    ['four bytes behind a dictionary id of four', frame(0xa3, '0102030409000000'), 9n],
    ['no byte', frame(0x00, '00ffff'), undefined],
    ['bytes that are cut off', frame(0xc0, '00ff'), undefined],
  ])('%s', (_what, bytes, size) => {
    expect(zstdContentSize(bytes)).toBe(size);
  });

  it('makes no room beyond what the producer wrote', async () => {
    const codec = await loadCodec(COMPRESSION_NUMBERS.zstd);
    const bomb = frame(0x80, '0000000070010000');

    expect(() => codec.decompress(bomb, 100)).toThrow(/claims 1879048192 bytes|length|larger/i);
  });
});

it('an unknown number is refused by name', async () => {
  await expect(loadCodec(9)).rejects.toThrow('compression 9 is not known');
});
