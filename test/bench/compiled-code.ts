// The code that is measured: what the TypeScript compiler makes of src, decorators and test/bench, as users get it. A
// loader such as tsx keeps the names of functions by a call for each closure made: every message would pay for it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript-6';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDERS = ['src', 'decorators', 'test/bench'].map((folder) => join(ROOT, folder));
/** Inside the package, so that its dependencies are found. */
const CACHE = join(ROOT, 'node_modules', '.cache');

/** Compiles, without checking types, into a folder of its own, which is removed when this process exits. */
export function compiledCode(): string {
  mkdirSync(CACHE, { recursive: true });
  const outDir = mkdtempSync(join(CACHE, 'pulsework-bench-'));
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true }));
  process.once('SIGINT', () => process.exit(130));
  writeFileSync(join(outDir, 'package.json'), '{ "type": "module" }\n');
  compileTo(outDir);
  return outDir;
}

function compileTo(outDir: string): void {
  const path = join(ROOT, 'tsconfig.json');
  const { config } = ts.readConfigFile(path, (file) => ts.sys.readFile(file)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const files = FOLDERS.flatMap((folder) => ts.sys.readDirectory(folder, ['.ts']));
  const emitOnly = { noEmit: false, noCheck: true, noResolve: true, noLib: true, types: [], incremental: false };
  const program = ts.createProgram(files, { ...options, ...emitOnly, rootDir: ROOT, outDir });
  if (program.emit().emitSkipped) throw new Error('the compiler wrote nothing');
}
