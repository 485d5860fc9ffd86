// The conformance suite as data: what it covers, and that each case says what it must.
import type { ConformanceHarness } from 'pulsework/testing';
import { ConformanceFailure, conformanceCases, missingFor } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { textOf } from '../architecture/source-files.js';
import { expectEqual } from '../../src/testing/conformance/expectations.js';

/** What a client can see of the rules in docs/semantics.md. A number that vanishes here is no longer checked anywhere else. */
const COVERED =
  'A-11 A-13 A-14 A-15 A-16 A-17 A-18 A-19 A-21 D-01 D-02 D-05 D-07 D-08 D-09 D-11 D-12 D-13 D-14 D-17 D-18 D-19 ' +
  'D-20 D-21 D-22 G-03 G-04 G-05 G-12 G-17 G-18 G-20 K-01 K-02 K-05 K-07 K-08 K-09 K-10 K-12 K-13 N-09 N-11 N-16 ' +
  'N-17 N-18 N-20 N-21 N-22 N-25 N-26 N-27 N-29 N-31 N-32 N-33 S-01 S-02 S-03 S-04 S-05 S-10 S-11 S-12 S-20 S-21 ' +
  'S-22 S-23 S-24 S-25 S-27 S-28 S-40 S-42 S-46 Y-01 Y-02 Y-05 Y-06 Y-08 Y-20 Y-22 Y-23 Y-24 Y-26';

it('covers the rules that are listed', () => {
  const numbers = conformanceCases.flatMap(({ rules }) => rules.map((rule) => rule.slice(0, 4)));
  expect([...new Set(numbers)].sort().join(' ')).toBe(COVERED);
});

it('covers each rule about redelivery, dead letters and delays, or says why no case can', () => {
  const rowsOf = (file: string): readonly string[] => textOf(file).match(/^\| [NDY]-\d{2} \|.*$/gm) ?? [];
  const numberOf = (row: string): string => row.slice(2, 6);
  const reasons = rowsOf('test/conformance/not-covered.md').filter((row) => row.includes('.test.ts'));
  const missing = rowsOf('docs/semantics.md')
    .map(numberOf)
    .filter((number) => !COVERED.includes(number));
  expect(reasons.map(numberOf)).toEqual(missing);
  const elsewhere = reasons.map((row) => ({ number: numberOf(row), file: /`(test\/\S+)`/.exec(row)?.[1] ?? '' }));
  expect(elsewhere.filter(({ number, file }) => !textOf(file).includes(number))).toEqual([]);
});

it('has at least sixty cases, each with a title of its own', () => {
  const titles = conformanceCases.map(({ title }) => title);
  expect(titles.length).toBeGreaterThanOrEqual(60);
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
  const silent = conformanceCases.filter(({ realTime }) => typeof realTime === 'object' && realTime.reason === '');
  expect(silent).toEqual([]);
});

it('names what a transport or its harness lacks', () => {
  const harness: Pick<ConformanceHarness, 'publishBatch' | 'statistics' | 'unload'> = {
    statistics: () => Promise.reject(new Error()),
  };
  const conformanceCase = {
    title: 'needs much',
    rules: [],
    needs: ['producer-batches', 'statistics', 'unload', 'flow-pause', 'ack-receipts'],
    run: () => Promise.resolve(),
  } as const;
  const missing = missingFor(conformanceCase, new Set(['ack-receipts']), harness);
  expect(missing).toBe('the transport or its harness lacks producer-batches, unload, flow-pause');
});

it('compares bytes, lists and records by value', () => {
  const equal = { name: 'a', bytes: Uint8Array.of(1, 2), list: [1, undefined] };
  expect(() => expectEqual(equal, { list: [1, undefined], bytes: Uint8Array.of(1, 2), name: 'a' }, 'x')).not.toThrow();
  expect(() => expectEqual([Uint8Array.of(1)], [[1]], 'the bytes')).toThrow(
    new ConformanceFailure('the bytes: expected [[1]], got [bytes [1]]'),
  );
  expect(() => expectEqual(null, 'null', 'x')).toThrow(ConformanceFailure);
});
