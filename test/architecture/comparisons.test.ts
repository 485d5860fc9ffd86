// Comparisons that cannot fail. `toMatchObject` and `toEqual` take a regular expression as a value with no properties, which
// any text is like: `expect.stringMatching()` is what looks at the text.
import { expect, it } from 'vitest';
import ts from 'typescript-6';
import { filesUnder, isTypeScript, parse, textOf } from './source-files.js';

/** What may be one, for files that need no closer look. */
const MAY_BE_REGEXP = /[:([,]\s*\/[^/*\s]/;
const COMPARISONS = new Set(['toMatchObject', 'toEqual', 'toStrictEqual']);

/** Lines on which a regular expression is compared with, and is no argument of a call inside. */
function linesWithRegExp(text: string): readonly number[] {
  const source = parse(text);
  const lines: number[] = [];
  const visit = (node: ts.Node, compared: boolean): void => {
    if (compared && ts.isRegularExpressionLiteral(node))
      lines.push(source.getLineAndCharacterOfPosition(node.getStart()).line + 1);
    if (!ts.isCallExpression(node)) return ts.forEachChild(node, (child) => visit(child, compared));
    const { expression } = node;
    const compares = ts.isPropertyAccessExpression(expression) && COMPARISONS.has(expression.name.text);
    visit(expression, false);
    for (const argument of node.arguments) visit(argument, compares);
  };
  visit(source, false);
  return lines;
}

it('none compares a value with a regular expression', () => {
  const found = filesUnder('test')
    .filter((path) => isTypeScript(path) && MAY_BE_REGEXP.test(textOf(path)))
    .flatMap((path) => linesWithRegExp(textOf(path)).map((line) => `${path}:${line}`));

  expect(found).toEqual([]);
});

it('one is found where it stands, and one that a matcher gets is not', () => {
  const text = 'expect(a).toMatchObject({\n  b: [/x/],\n});\nexpect(a).toEqual(expect.stringMatching(/x/));';

  expect(linesWithRegExp(text)).toEqual([2]);
});
