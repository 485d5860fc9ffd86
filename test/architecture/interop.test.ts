// docs/interop.md says what is exchanged with other clients: each cell of its table names tests that exist, or a reason.
import { expect, it } from 'vitest';
import { textOf } from './source-files.js';

const page = textOf('docs/interop.md');
const rows = [...page.matchAll(/^\| (?!what )(.+) \|$/gm)].map(([, row = '']) => row.split(' | '));
const reasons = [...page.matchAll(/^(\d)\. \S/gm)].map(([, number = '']) => number);
const tests = [...page.matchAll(/^- \*\*(\w)\*\* `(test\/\S+)`: "(.+)"$/gm)].map(
  ([, letter = '', file = '', title = '']) => ({ letter, file, title }),
);
const columns = ['Java', 'Java', 'Python', 'Python'];
const cells = rows.flatMap(([what = '', ...directions]) =>
  directions.map((cell, index) => ({ what, cell, client: columns[index] ?? 'nobody' })),
);
const lettersOf = (cell: string): readonly string[] => cell.replace(/^no|\(\d\)/g, '').match(/\w/g) ?? [];
const reasonsOf = (cell: string): readonly string[] => [...cell.matchAll(/\((\d)\)/g)].map(([, number = '']) => number);

it('has a cell for each direction of each row', () => {
  expect(rows.length).toBeGreaterThan(12);
  expect(rows.filter((row) => row.length !== 1 + columns.length)).toEqual([]);
});

it.each(cells)('$what, $client: "$cell" names tests with that client, or why there is none', ({ cell, client }) => {
  const named = lettersOf(cell).map((letter) => tests.find((test) => test.letter === letter)?.title ?? `no ${letter}`);

  expect(named.filter((title) => !title.includes(client))).toEqual([]);
  expect(reasonsOf(cell).filter((number) => !reasons.includes(number))).toEqual([]);
  if (named.length === 0) expect(cell).toMatch(/^no \(\d\)$/);
});

it('lists each test once and none that no cell names, and the same of reasons', () => {
  const letters = tests.map(({ letter }) => letter);

  expect(letters).toEqual([...new Set(letters)]);
  expect(new Set(letters)).toEqual(new Set(cells.flatMap(({ cell }) => lettersOf(cell))));
  expect(new Set(reasons)).toEqual(new Set(cells.flatMap(({ cell }) => reasonsOf(cell))));
});

/** Titles of the tests in `file`, one for each client where the title has a place for it. */
function titlesIn(file: string): readonly string[] {
  const found = [...textOf(file).matchAll(/\btest(?:\.for\(\w+\))?\(\s*(['`])(.*?)\1/g)].map(
    ([, , title = '']) => title,
  );
  return found.flatMap((title) => ['Java', 'Python'].map((client) => title.replaceAll('${client}', client)));
}

it.each(tests)('$file has a test "$title"', ({ file, title }) => {
  expect(titlesIn(file)).toContain(title);
});

it('names every test of the interop files', () => {
  const files = [...new Set(tests.map(({ file }) => file))];

  expect(new Set(files.flatMap(titlesIn))).toEqual(new Set(tests.map(({ title }) => title)));
});
