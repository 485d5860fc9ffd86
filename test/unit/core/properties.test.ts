import { describe, expect, it } from 'vitest';
import { NO_PROPERTIES, areProperties, copyProperties, propertyProblems } from '../../../src/core/properties.js';

const hostile = JSON.parse('{"__proto__":"a","constructor":"b","length":"c","größe":"d"}') as Record<string, string>;

describe('copyProperties', () => {
  it('keeps names that objects use for themselves', () => {
    const copy = copyProperties(hostile);
    expect(Object.entries(copy)).toEqual(Object.entries(hostile));
  });

  it('pollutes no prototype', () => {
    copyProperties(JSON.parse('{"__proto__":"polluted"}') as Record<string, string>);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  it('finds nothing that was not set', () => {
    const copy = copyProperties({ a: '1' });
    expect(['toString', '__proto__', 'constructor'].map((name) => copy[name])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('does not copy what is inherited', () => {
    const source = Object.create({ inherited: 'x' }) as Record<string, string>;
    source['own'] = 'y';
    expect(Object.keys(copyProperties(source))).toEqual(['own']);
  });

  it('is a copy: the source stays as it was', () => {
    const source = { a: '1' };
    copyProperties(source)['a'] = '2';
    expect(source.a).toBe('1');
  });

  it('is empty without a source', () => {
    expect(Object.keys(copyProperties(undefined))).toEqual([]);
  });
});

describe('NO_PROPERTIES', () => {
  it('cannot be changed', () => {
    expect(() => ((NO_PROPERTIES as Record<string, string>)['a'] = '1')).toThrow(TypeError);
  });
});

describe('propertyProblems', () => {
  it.each([undefined, {}, hostile])('has nothing against %j', (properties) => {
    expect(propertyProblems(properties)).toEqual([]);
  });

  it.each([null, 'a', 5, ['a'], [], new Map([['a', '1']]), new Headers({ a: '1' })])(
    'refuses %o as a whole',
    (properties) => {
      expect(propertyProblems(properties)).toEqual([
        expect.stringMatching(/^"properties" must be an object of texts, got /),
      ]);
      expect(areProperties(properties)).toBe(false);
    },
  );

  it('names each property that is no text', () => {
    expect(propertyProblems({ a: 1, b: 'fine', c: null })).toEqual([
      'property "a" must be a text, got 1',
      'property "c" must be a text, got null',
    ]);
  });
});
