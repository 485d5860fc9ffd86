import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesCodec, jsonCodec, textCodec } from '../../../src/core/codec.js';

const INVALID_UTF8 = Uint8Array.of(0x22, 0xff, 0x22);
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

describe('the JSON codec', () => {
  it('gives back what it was given', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonCodec.decode(jsonCodec.encode(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { seed: 5 },
    );
  });

  it.each([undefined, () => 1, Symbol('s')])('refuses %s, which has no JSON form', (value) => {
    expect(() => jsonCodec.encode(value)).toThrow(/without a JSON form/);
  });

  it('refuses a value that contains itself', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    expect(() => jsonCodec.encode(cyclic)).toThrow(TypeError);
  });

  it.each([
    ['an empty payload', new Uint8Array()],
    ['half a document', new TextEncoder().encode('{"a":')],
    ['bytes that are not UTF-8', INVALID_UTF8],
  ])('cannot decode %s', (_, bytes) => {
    expect(() => jsonCodec.decode(bytes)).toThrow();
  });

  it('makes a property named __proto__ a property, not a prototype', () => {
    const value = jsonCodec.decode(new TextEncoder().encode('{"__proto__":{"polluted":true}}')) as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('reads a document that begins with a byte order mark', () => {
    expect(jsonCodec.decode(Uint8Array.of(...BYTE_ORDER_MARK, 0x31))).toBe(1);
  });
});

describe('the text codec', () => {
  it('gives back what it was given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(textCodec.decode(textCodec.encode(text))).toBe(text);
      }),
      { seed: 6 },
    );
  });

  it('keeps a byte order mark, which is a character of the text', () => {
    expect(textCodec.decode(textCodec.encode('\uFEFFa'))).toBe('\uFEFFa');
  });

  it('refuses what is no text', () => {
    expect(() => textCodec.encode(5 as never)).toThrow('the text codec takes a string, got number');
  });

  it('cannot decode bytes that are not UTF-8, instead of replacing them', () => {
    expect(() => textCodec.decode(INVALID_UTF8)).toThrow(TypeError);
  });
});

describe('the bytes codec', () => {
  it('leaves bytes as they are', () => {
    expect(bytesCodec.decode(bytesCodec.encode(INVALID_UTF8))).toBe(INVALID_UTF8);
  });

  it('refuses what is no bytes', () => {
    expect(() => bytesCodec.encode('a' as never)).toThrow('the bytes codec takes a Uint8Array, got string');
  });
});
