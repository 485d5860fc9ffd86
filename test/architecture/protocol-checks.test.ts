// docs/wire-client.md names a test for each point of the protocol that is checked, docs/clients.md for each rule that keeps
// the traps of the official client away, and where it is kept: all of them exist.
import { describe, expect, it } from 'vitest';
import { repositoryFiles, textOf } from './source-files.js';

const PAGES = [
  { file: 'docs/wire-client.md', heading: '## What of the protocol is checked', points: 43 },
  { file: 'docs/clients.md', heading: '## What of the official client is defended', points: 12 },
];

function rowsOf(file: string, heading: string) {
  const page = textOf(file).split(heading)[1] ?? '';
  return [...page.matchAll(/^\| (\d+) \| ([^|]+) \| (.+) \|$/gm)].map(([, number = '', what = '', cell = '']) => ({
    number: Number(number),
    what,
    files: [...cell.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path = '']) => path),
    tests: [...cell.matchAll(/`([^`]+)`: "([^"]+)"/g)].map(([, path = '', title = '']) => ({ file: path, title })),
  }));
}

/** Titles as they stand in the file: of tests, and of conformance cases. */
function titlesIn(file: string): readonly string[] {
  const quoted = /(?:\b(?:test|it)(?:\.\w+)*\(|\]\)\(|\btitle:|\)\(|^)\s*(['"`])(.*?)\1,/gm;
  return [...textOf(file).matchAll(quoted)].map(([, , title = '']) => title);
}

describe.each(PAGES)('$file', ({ file: page, heading, points }) => {
  const rows = rowsOf(page, heading);

  it(`has its ${points} points in order, each with a test`, () => {
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: points }, (_, index) => index + 1));
    expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  });

  it.each(rows)('$number: $what', ({ files, tests }) => {
    expect(files.filter((path) => !repositoryFiles.includes(path))).toEqual([]);
    expect(tests.filter(({ file, title }) => !titlesIn(file).includes(title))).toEqual([]);
  });
});
