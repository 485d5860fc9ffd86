import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cutToBytes, utf8Length } from '../../../src/core/text.js';

it.each([
  ['', 0],
  ['abc', 3],
  ['größe', 7],
  ['€', 3],
  ['😀', 4],
])('%j takes %i bytes', (text, bytes) => {
  expect(utf8Length(text)).toBe(bytes);
});

it('leaves a text that fits as it is', () => {
  expect(cutToBytes('größe', 7)).toBe('größe');
});

it('marks a cut', () => {
  expect(cutToBytes('abcdefghijkl', 10)).toBe('abcd [cut]');
});

it('never cuts a character in half', () => {
  expect(cutToBytes('😀😀😀😀', 12)).toBe('😀 [cut]');
});

it('never gives more bytes than asked for, and a beginning of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.integer({ min: 6, max: 80 }), (text, maxBytes) => {
      const cut = cutToBytes(text, maxBytes);
      expect(utf8Length(cut)).toBeLessThanOrEqual(maxBytes);
      expect(text.startsWith(cut.replace(/ \[cut\]$/, ''))).toBe(true);
    }),
    { seed: 4 },
  );
});
