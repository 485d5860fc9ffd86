// docs/wire-client.md names a test for each point of the protocol that is checked: all of them exist.
import { expect, it } from 'vitest';
import { textOf } from './source-files.js';

const page = textOf('docs/wire-client.md').split('## What of the protocol is checked')[1] ?? '';
const rows = [...page.matchAll(/^\| (\d+) \| ([^|]+) \| (.+) \|$/gm)].map(([, number = '', what = '', cell = '']) => ({
  number: Number(number),
  what,
  tests: [...cell.matchAll(/`([^`]+)`: "([^"]+)"/g)].map(([, file = '', title = '']) => ({ file, title })),
}));

/** Titles as they stand in the file: of tests, and of conformance cases. */
function titlesIn(file: string): readonly string[] {
  const quoted = /(?:\b(?:test|it)(?:\.\w+)*\(|\]\)\(|\btitle:|\)\(|^)\s*(['"`])(.*?)\1,/gm;
  return [...textOf(file).matchAll(quoted)].map(([, , title = '']) => title);
}

it('has the 43 points in order, each with a test', () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 43 }, (_, index) => index + 1));
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
});

it.each(rows)('$number: $what', ({ tests }) => {
  expect(tests.filter(({ file, title }) => !titlesIn(file).includes(title))).toEqual([]);
});
