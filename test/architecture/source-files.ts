// The files that the architecture tests look at, and what each imports. Read once, parsed by the compiler itself.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript-6';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Files of the repository, also those not committed yet; paths from its root with forward slashes. */
export const repositoryFiles: readonly string[] = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '-z'],
  { cwd: ROOT, encoding: 'utf8' },
)
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)))
  .sort();

export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export function filesUnder(...folders: string[]): readonly string[] {
  return repositoryFiles.filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

export function isTypeScript(path: string): boolean {
  return path.endsWith('.ts');
}

export function syntaxOf(path: string): ts.SourceFile {
  return parse(textOf(path), path);
}

export function parse(text: string, path = 'example.ts'): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
}

/** What a file imports or re-exports, `import()` and types included: paths from the root, or package names as written. */
export function importsOf(path: string, source: ts.SourceFile = syntaxOf(path)): readonly string[] {
  const imported: string[] = [];
  const visit = (node: ts.Node): void => {
    const name = importedName(node);
    if (name !== undefined && ts.isStringLiteralLike(name)) imported.push(name.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return imported.map((name) =>
    name.startsWith('.') ? posix.join(dirname(path), name).replace(/\.js$/, '.ts') : name,
  );
}

function importedName(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return node.argument.literal;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return node.arguments[0];
  return undefined;
}
