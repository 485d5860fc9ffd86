// A clone must work anywhere: no file names a package registry or a place on somebody's machine.
import { homedir } from 'node:os';
import { expect, it } from 'vitest';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

const texts = repositoryFiles.map((path) => ({ path, text: textOf(path) }));

/** Lines of all files that match (patterns are written so that they do not match themselves), as `path:line`. */
function placesOf(pattern: RegExp): string[] {
  return texts.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
  );
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

it('no file names the host of a package registry', () => {
  expect(placesOf(/registry\.[a-z0-9-]+\.[a-z]{2,}|npm(mirror|pkg)\.\w+|artifactor[y]|\/repository\/npm/i)).toEqual([]);
});

it('the lock file names no download address', () => {
  expect(placesOf(/"resolved"\s*:/)).toEqual([]);
});

it('no file holds an absolute path of a machine', () => {
  const here = ROOT.replace(/\/$/, '');
  const own = [homedir(), here].filter((path) => path.split('/').length > 2).map(escaped);
  const places = [...own, '/(home|Users|root|work)'].join('|');

  expect(placesOf(new RegExp(`(?<![\\w.:/-])(${places})/\\w`))).toEqual([]);
});
