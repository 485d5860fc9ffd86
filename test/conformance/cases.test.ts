// The conformance suite as data: what it covers, and that each case says what it must.
import type { ConformanceCase } from 'pulsework/testing';
import { ConformanceFailure, conformanceCases, missingFor } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { textOf } from '../architecture/source-files.js';
import { expectEqual } from '../../src/testing/conformance/expectations.js';

/** Every number of the series that brokers and clients follow, from the first to the last of each run. */
const NUMBERS = numbersOf(
  'N 1-33',
  'A 1-21',
  'D 1-23',
  'K 1-15',
  'Y 1-9 20-26',
  'T 2-3 7-7 10-11 14-17',
  'S 1-6 10-13 20-30 40-46',
  'G 1-23',
);

/** What is found in `test/conformance/not-covered.md`, by number: whatever stands behind it in its row. */
const NOT_COVERED = rowsOf('test/conformance/not-covered.md', /^\| ([NADKYTSG]-\d{2}) \|(.*)\|$/gm);
/** The rules that code and tests name. */
const IN_USE = rowsOf('docs/semantics.md', /^\| ([NADKYSG]-\d{2}) \|(.*)\|$/gm);

const numbersOfCase = ({ rules }: ConformanceCase): readonly string[] => rules.map((rule) => rule.slice(0, 4));
const COVERED = new Set(conformanceCases.flatMap(numbersOfCase));

it('covers each number, or says why no case can, and knows no other one', () => {
  const named = [...COVERED, ...NOT_COVERED.keys()];
  expect(
    NUMBERS.filter((number) => !named.includes(number)),
    'without a case or a reason',
  ).toEqual([]);
  expect(
    named.filter((number) => !NUMBERS.includes(number)),
    'unknown',
  ).toEqual([]);
  expect(
    [...NOT_COVERED.keys()].filter((number) => COVERED.has(number)),
    'in a case, and in not-covered.md',
  ).toEqual([]);
});

it('names the test that checks what no case can; without one it is no rule of a client here', () => {
  const elsewhere = [...NOT_COVERED].map(([number, row]) => ({ number, file: /`(test\/\S+)`/.exec(row)?.[1] }));
  const tested = elsewhere.filter(({ file }) => file !== undefined);
  expect(
    tested.filter(({ number, file = '' }) => !textOf(file).includes(number)),
    'not in its test',
  ).toEqual([]);
  expect(
    tested.filter(({ number }) => !IN_USE.has(number)),
    'tested, but no rule',
  ).toEqual([]);
  const others = elsewhere.filter(({ file }) => file === undefined);
  expect(
    others.filter(({ number }) => IN_USE.has(number)),
    'a rule without a test',
  ).toEqual([]);
});

it('has at least 150 cases that bear a number, each with a title of its own', () => {
  expect(conformanceCases.filter(({ rules }) => rules.length > 0).length).toBeGreaterThanOrEqual(150);
  const titles = conformanceCases.map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

it('has a sentence beside each number', () => {
  const bare = conformanceCases
    .flatMap(({ rules }) => rules)
    .filter((rule) => !/^[NADKYTSG]-\d{2}: \S.{10,}$/.test(rule));
  expect(bare).toEqual([]);
});

it('has cases for every type of subscription', () => {
  for (const type of ['exclusive', 'failover', 'shared', 'key-shared']) {
    expect(conformanceCases.filter(({ title }) => title.includes(`${type}:`)).length, type).toBeGreaterThan(10);
  }
});

it('says why a case is not in the gate', () => {
  const elsewhere = conformanceCases.filter(({ realTime = 'gate' }) => realTime !== 'gate');
  expect(elsewhere.length).toBeGreaterThan(0);
  const silent = elsewhere.filter(({ realTime }) => typeof realTime === 'object' && !/\w+ \w+/.test(realTime.reason));
  expect(silent).toEqual([]);
});

it('names what a transport or its harness lacks', () => {
  const harness: Parameters<typeof missingFor>[2] = { statistics: () => Promise.reject(new Error()) };
  const conformanceCase = {
    title: 'needs much',
    rules: [],
    needs: ['producer-batches', 'statistics', 'unload', 'grow', 'flow-pause', 'ack-receipts'],
    run: () => Promise.resolve(),
  } as const;
  const missing = missingFor(conformanceCase, new Set(['ack-receipts']), harness);
  expect(missing).toBe('the transport or its harness lacks producer-batches, unload, grow, flow-pause');
});

it('compares bytes, lists and records by value', () => {
  const equal = { name: 'a', bytes: Uint8Array.of(1, 2), list: [1, undefined] };
  expect(() => expectEqual(equal, { list: [1, undefined], bytes: Uint8Array.of(1, 2), name: 'a' }, 'x')).not.toThrow();
  expect(() => expectEqual([Uint8Array.of(1)], [[1]], 'the bytes')).toThrow(
    new ConformanceFailure('the bytes: expected [[1]], got [bytes [1]]'),
  );
  expect(() => expectEqual(null, 'null', 'x')).toThrow(ConformanceFailure);
});

/** `numbersOf('A 1-3 20-21')` is. */
function numbersOf(...series: readonly string[]): readonly string[] {
  return series.flatMap((text) => {
    const [letter = '', ...runs] = text.split(' ');
    return runs.flatMap((run) => {
      const [first = NaN, last = NaN] = run.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => `${letter}-${String(first + i).padStart(2, '0')}`);
    });
  });
}

function rowsOf(file: string, row: RegExp): ReadonlyMap<string, string> {
  return new Map([...textOf(file).matchAll(row)].map(([, number = '', rest = '']) => [number, rest]));
}
