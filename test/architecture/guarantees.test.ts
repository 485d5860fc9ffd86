// docs/guarantees.md names, for each promise, the test that proves it: the file must hold a test of that title.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/guarantees.md', ROOT), 'utf8');
const proofs = [...page.matchAll(/^\| ([^|]+) \| [^|]+ \| `(test\/[^`]+)`: "([^"]+)" \|$/gm)].map(
  ([, promise, file, title]) => ({ promise, file, title }),
);

describe('docs/guarantees.md', () => {
  it('names a proof for each promise', () => {
    const section = page.split('## What is promised')[1]?.split('\n## ')[0] ?? '';
    const rows = section.split('\n').filter((line) => line.startsWith('| ')).length - 1;
    expect(proofs).toHaveLength(rows);
    expect(rows).toBeGreaterThan(8);
  });

  it.each(proofs)('$promise: $file has a test "$title"', ({ file, title }) => {
    const titles = [
      ...readFileSync(new URL(file!, ROOT), 'utf8').matchAll(/\b(?:it|test)(?:\.each[\s\S]*?)?\(\s*(['"`])(.*?)\1/g),
    ].map((match) => match[2]);
    expect(titles.some((each) => each?.includes(title!))).toBe(true);
  });
});
