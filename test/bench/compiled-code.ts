// The code that is measured: what the TypeScript compiler makes of src, decorators and test/bench, as users get it. A
// loader such as tsx keeps the names of functions by a call for each closure made: every message would pay for it.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDERS = ['src', 'decorators', 'test/bench'].map((folder) => join(ROOT, folder));
/** Inside the package, so that its dependencies are found. */
const CACHE = join(ROOT, 'node_modules', '.cache');

/** Compiles, without checking types, into a folder of its own, and removes that when `use` has ended. */
export async function withCompiledCode(use: (root: string) => Promise<void>): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const out = await mkdtemp(join(CACHE, 'pulsework-bench-'));
  try {
    await writeFile(join(out, 'package.json'), '{ "type": "module" }\n');
    compileTo(out);
    await use(out);
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

function compileTo(out: string): void {
  const path = join(ROOT, 'tsconfig.json');
  const { config } = ts.readConfigFile(path, (file) => ts.sys.readFile(file)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const files = FOLDERS.flatMap((folder) => ts.sys.readDirectory(folder, ['.ts']));
  const emitOnly = { noEmit: false, noCheck: true, noResolve: true, noLib: true, types: [], incremental: false };
  const program = ts.createProgram(files, { ...options, ...emitOnly, rootDir: ROOT, outDir: out });
  if (program.emit().emitSkipped) throw new Error('the compiler wrote nothing');
}
