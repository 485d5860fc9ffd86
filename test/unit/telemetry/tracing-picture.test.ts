// docs/tracing.svg is drawn by example 11 from a real run, and must be drawn again when its tree changes:
// `npx tsx examples/11-tracing/main.ts docs/tracing.svg`.
import { expect, it } from 'vitest';
import { textOf } from '../../architecture/source-files.js';

it('docs/tracing.svg has the spans that example 11 prints, in the same order and depth', () => {
  const rows = [...textOf('docs/tracing.svg').matchAll(/<text x="(\d+)" y="\d+" fill="#1f2328">([^<]+)</g)];
  const drawn = rows.map(([, x, name = '']) => ({ name, depth: (Number(x) - Number(rows[0]?.[1])) / 16 }));
  const lines = textOf('examples/11-tracing/expected-output.txt').split('\n').slice(2);
  const printed = lines.flatMap((line) => {
    const [, indent = '', name] = /^ *\d+ ( *)(\S+(?: \S+)*) {2}/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, depth: indent.length / 2 }];
  });

  expect(drawn).toEqual(printed);
  expect(printed).toHaveLength(10);
});
