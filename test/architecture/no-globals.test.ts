// Time, randomness, the process and the console come through ports: only src/system touches them. Otherwise a test with
// a FakeClock would see half of what production sees.
import ts from 'typescript-6';
import { expect, it } from 'vitest';
import { filesUnder, isTypeScript, parse, syntaxOf } from './source-files.js';

const GLOBALS = new Set([
  'setTimeout',
  'setInterval',
  'setImmediate',
  'process',
  'console',
  'performance',
  'crypto',
  'globalThis',
  'fetch',
]);
const MEMBERS = new Set(['Date.now', 'Math.random', 'AbortSignal.timeout']);

/** Uses of globals in a file, as `name (line N)`. */
function globalsIn(source: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = globalName(node);
    if (name !== undefined) {
      found.push(`${name} (line ${source.getLineAndCharacterOfPosition(node.getStart()).line + 1})`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function globalName(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node) && MEMBERS.has(node.getText())) return node.getText();
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0) {
    return 'new Date()';
  }
  if (ts.isIdentifier(node) && GLOBALS.has(node.text) && isReference(node)) return node.text;
  return undefined;
}

/** Whether an identifier names a value, rather than a member, a property or a parameter that happens to be called so. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  return !('name' in parent && parent.name === node);
}

const files = filesUnder('src', 'decorators').filter((path) => isTypeScript(path) && !path.startsWith('src/system/'));

it('no file outside src/system uses a global that ports stand for', () => {
  const uses = files.flatMap((path) =>
    globalsIn(syntaxOf(path))
      // The fake clock lets promises settle between two timers, and that takes a turn of the real event loop.
      .filter((use) => !(path.startsWith('src/testing/') && use.startsWith('setImmediate ')))
      .map((use) => `${path}: ${use}`),
  );

  expect(uses).toEqual([]);
});

it('the search finds each global and leaves members of the same name alone', () => {
  const found = (text: string) => globalsIn(parse(text));

  expect(found('const a = Date.now();\nnew Date();')).toEqual(['Date.now (line 1)', 'new Date() (line 2)']);
  expect(found('f(setTimeout, { console }, x?.[process.pid]);')).toHaveLength(3);
  expect(found('Math.random(); AbortSignal.timeout(5); globalThis.fetch;')).toHaveLength(3);
  expect(found('new Date(5); a.process(); class A { console = 1; setTimeout() {} } ({ process: 1 });')).toEqual([]);
});
