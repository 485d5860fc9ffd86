// What documents and manifests repeat from the code must agree with it.
import { ERROR_CODES } from 'pulsework';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { deadLetterMessage } from '../../src/core/dead-letter.js';
import { retryLetterMessage } from '../../src/core/retry-letter.js';
import { VERSION } from '../../src/core/version.js';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

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

it('links from one document to another lead somewhere, to a title too', () => {
  const documents = repositoryFiles.filter((path) => /^(docs\/)?[^/]+\.md$/.test(path));
  const links = documents.flatMap((from) =>
    [...textOf(from).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].map(([link, path = '', title]) => {
      const to = path === '' ? from : join(dirname(from), path);
      const titles = title === undefined ? [] : titlesOf(textOf(to));
      return {
        link: `${from}: ${link}`,
        leads: existsSync(join(ROOT, to)) && (title === undefined || titles.includes(title)),
      };
    }),
  );

  expect(links.filter(({ leads }) => !leads)).toEqual([]);
  expect(links.length).toBeGreaterThan(20);
});

/** Titles in the form in which links name them. */
function titlesOf(text: string): readonly string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

it('docs/redelivery.md lists every property of a retry letter and of a dead letter, and no other', () => {
  const id = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: 'persistent://a/b/orders' };
  const rest = { publishTimeMs: 0, redeliveryCount: 0, connection: 1 };
  const message = { id, payload: null, properties: {}, ...rest };
  const error = new Error('declined', { cause: new Error('no answer') });
  const times = { firstFailureMs: 0, lastFailureMs: 0 };
  const where = { originTopic: id.topic, originId: '1:2:-1', handler: 'h', subscription: 's', host: 'x', processId: 1 };
  const why = { cause: 'poison', failure: { reason: 'declined', error }, attempt: 1, redact: undefined } as const;
  const dead = deadLetterMessage(message, { ...where, ...why, ...times, maxMessageBytes: 1_000_000 });
  const again = retryLetterMessage(message, undefined, { attempts: 1, delayMs: 1, now: 0, firstFailureMs: 0 });
  const listed = [...textOf('docs/redelivery.md').matchAll(/`(pulsework-[a-z-]+|[A-Z]+_[A-Z_]+|RECONSUMETIMES)`/g)];
  const properties = listed.map(([, name = '']) => name).filter((name) => !(name in ERROR_CODES));
  const written = [...Object.keys(dead.properties), ...Object.keys(again.properties)];

  expect([...new Set(properties)].toSorted()).toEqual([...new Set(written)].toSorted());
});

it('CHANGELOG.md has a section for what is not released yet', () => {
  expect(textOf('CHANGELOG.md')).toMatch(/^## \[Unreleased\]$/m);
});
