// The command line of `npm run bench`.
import { expect, it } from 'vitest';
import { parseArguments } from '../../bench/arguments.js';

const KNOWN = ['runtime', 'held', 'broker'];

it('runs all benchmarks when none is named', () => {
  expect(parseArguments([], KNOWN)).toEqual({ names: KNOWN, json: false });
});

it('runs the named ones, once each, in their own order', () => {
  expect(parseArguments(['held', 'runtime', 'held'], KNOWN).names).toEqual(['runtime', 'held']);
});

it('takes --json anywhere', () => {
  expect(parseArguments(['--json', 'held'], KNOWN)).toEqual({ names: ['held'], json: true });
});

it('runs all of them as JSON when --json is all there is', () => {
  expect(parseArguments(['--json'], KNOWN)).toEqual({ names: KNOWN, json: true });
});

it('refuses names that it does not know, all of them at once, and lists those it knows', () => {
  expect(() => parseArguments(['runtme', 'held', '--jsn'], KNOWN)).toThrow(
    'unknown: "runtme", "--jsn"; benchmarks are runtime, held, broker; the only option is --json',
  );
});
