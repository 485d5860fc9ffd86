// The names that each entry point exports. A change here is a change for users: it belongs into CHANGELOG.md.
// After an intended one: npx vitest run test/architecture/public-api.test.ts -u
import ts from 'typescript-6';
import { expect, it } from 'vitest';
import { repositoryFiles, syntaxOf, textOf } from './source-files.js';

interface PackageJson {
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}
const packageJson = JSON.parse(textOf('package.json')) as PackageJson;

/** Entry points with the source file that each is built from. */
const entryPoints = Object.entries(packageJson.exports).flatMap(([name, target]) =>
  typeof target === 'string'
    ? []
    : [{ name: name.replace('.', 'pulsework'), source: target.default.replace('./dist/', '').replace(/\.js$/, '.ts') }],
);

/** Exported names, types marked as such. A star would export names that nobody decided on. */
function exportedNames(path: string): string[] {
  return syntaxOf(path).statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement)) return declaredExport(statement);
    const { exportClause, isTypeOnly } = statement;
    if (exportClause === undefined || !ts.isNamedExports(exportClause)) throw new Error(`${path} exports a star`);
    return exportClause.elements.map((e) => (isTypeOnly || e.isTypeOnly ? `type ${e.name.text}` : e.name.text));
  });
}

function declaredExport(statement: ts.Statement): string[] {
  const modifiers = ts.canHaveModifiers(statement) ? (ts.getModifiers(statement) ?? []) : [];
  if (!modifiers.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword)) return [];
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement))
    return [`type ${statement.name.text}`];
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map((d) => d.name.getText());
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement))
    return [statement.name?.text ?? 'default'];
  throw new Error(`an export of a kind that this test does not know: ${statement.getText().slice(0, 60)}`);
}

it('exports the names that are written down', async () => {
  const listed = entryPoints
    .filter(({ source }) => repositoryFiles.includes(source))
    .map(
      ({ name, source }) =>
        `${name}\n${[...new Set(exportedNames(source))]
          .sort()
          .map((n) => `  ${n}\n`)
          .join('')}`,
    )
    .join('\n');

  await expect(listed).toMatchFileSnapshot('./public-api.txt');
});

it.each(entryPoints)('$name is built from a file that exists', ({ source }) => {
  expect(repositoryFiles).toContain(source);
});

it.each(entryPoints)('$name loads, and has the values it lists', async ({ name, source }) => {
  const loaded = (await import(name)) as object;
  const values = exportedNames(source).filter((name) => !name.startsWith('type '));

  expect(Object.keys(loaded).sort()).toEqual([...new Set(values)].sort());
});
