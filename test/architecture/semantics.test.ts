// docs/semantics.md lists exactly the statement numbers that code and tests name.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const NUMBER = /\b[NADKYTSG]-\d{2}\b/g;

function numbersIn(text: string): string[] {
  return [...new Set(text.match(NUMBER) ?? [])].sort();
}

function trackedText(...paths: readonly string[]): string {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return files
    .split('\n')
    .filter((file) => file.endsWith('.ts') && !file.endsWith('semantics.test.ts') && existsSync(new URL(file, ROOT)))
    .map((file) => readFileSync(new URL(file, ROOT), 'utf8'))
    .join('\n');
}

describe('docs/semantics.md', () => {
  const page = readFileSync(new URL('docs/semantics.md', ROOT), 'utf8');
  const listed = numbersIn(
    page
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .map((line) => line.split('|')[1] ?? '')
      .join('\n'),
  );

  it('lists every number that code or a test names', () => {
    expect(
      numbersIn(trackedText('src', 'test', 'decorators', 'examples')).filter((number) => !listed.includes(number)),
    ).toEqual([]);
  });

  it('lists no number that no test names', () => {
    const tested = numbersIn(trackedText('test', 'src/testing/conformance'));
    const inCodeOnly = listed.filter((number) => !tested.includes(number));
    expect(inCodeOnly).toEqual([]);
  });
});
