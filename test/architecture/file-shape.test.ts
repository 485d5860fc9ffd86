// Names and sizes: a newcomer finds a thing by its name and reads a file top to bottom.
import { basename } from 'node:path';
import { expect, it } from 'vitest';
import { filesUnder, textOf } from './source-files.js';

const MAX_LINES = 400;
const code = filesUnder('src', 'decorators', 'test', 'examples').filter((path) => /\.(ts|mjs)$/.test(path));

it(`no file has more than ${MAX_LINES} lines`, () => {
  const long = code.filter((path) => textOf(path).trimEnd().split('\n').length > MAX_LINES);

  expect(long).toEqual([]);
});

it('file names are kebab-case', () => {
  const odd = code.filter((path) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|config|d))?\.(ts|mjs)$/.test(basename(path)));

  expect(odd).toEqual([]);
});

it('no file or folder has a name that says nothing', () => {
  const vague = code.filter((path) => /(^|[/-])(utils?|helpers?|common|manager|misc)([/.-]|$)/.test(path));

  expect(vague).toEqual([]);
});

it('index.ts is the name of entry points only', () => {
  const barrels = code.filter((path) => basename(path) === 'index.ts');

  expect(barrels).toEqual(['decorators/index.ts', 'src/index.ts']);
});

it('each source file starts by saying what it owns', () => {
  const sources = code.filter((path) => !path.startsWith('test/'));
  const silent = sources.filter((path) => !/^(#!.*\n)?(\/\/|\/\*\*) \S/.test(textOf(path)));

  expect(silent).toEqual([]);
});
