// What documents and manifests repeat from the code must agree with it.
import { ERROR_CODES } from 'pulsework';
import { expect, it } from 'vitest';
import { VERSION } from '../../src/core/version.js';
import { textOf } from './source-files.js';

const sections = textOf('docs/errors.md')
  .split(/^### /m)
  .slice(1)
  .map((section) => ({ code: /^`([A-Z_]+)`/.exec(section)?.[1] ?? section.slice(0, 40), text: section }));

it('docs/errors.md has every error code, in the order of the table, and no other', () => {
  expect(sections.map(({ code }) => code)).toEqual(Object.keys(ERROR_CODES));
});

it.each(sections)('docs/errors.md says of $code when it comes and what to do', ({ text }) => {
  expect(text).toMatch(/\*\*When:\*\* \S/);
  expect(text).toMatch(/\*\*What to do:\*\* \S/);
});

it('VERSION is the version of package.json', () => {
  expect(VERSION).toBe((JSON.parse(textOf('package.json')) as { version: string }).version);
});

it('CHANGELOG.md has a section for what is not released yet', () => {
  expect(textOf('CHANGELOG.md')).toMatch(/^## \[Unreleased\]$/m);
});
