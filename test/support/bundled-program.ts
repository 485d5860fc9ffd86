// A TypeScript program of this repository as one file of JavaScript: it starts in a fifth of the time that a loader takes
// to compile each module anew, and tests start a hundred of them. Packages are left to Node.
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from '../architecture/source-files.js';

/** Inside the package, so that its dependencies are found. */
const FOLDER = join(ROOT, 'node_modules', '.cache', 'pulsework-programs');

const built = new Map<string, Promise<string>>();

/** @param program path from the root, or an absolute one. @returns the arguments for Node that run it. */
export async function bundledProgram(program: string, tsconfig?: string): Promise<readonly string[]> {
  // Stacks name the sources: fingerprints of failures are made of them.
  return ['--enable-source-maps', await bundleOf(program, tsconfig)];
}

function bundleOf(program: string, tsconfig = join(ROOT, 'tsconfig.json')): Promise<string> {
  const path = resolve(ROOT, program);
  const known = built.get(path);
  if (known !== undefined) return known;
  // Of this process alone: another may be making its own.
  const name = `${createHash('sha256').update(path).digest('hex').slice(0, 16)}-${process.pid}.mjs`;
  const bundling = bundle(path, join(FOLDER, name), tsconfig);
  built.set(path, bundling);
  return bundling;
}

async function bundle(path: string, outfile: string, tsconfig: string): Promise<string> {
  await build({
    entryPoints: [path],
    outfile,
    tsconfig,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    // Names of error classes are printed, and two classes may have one name.
    keepNames: true,
    sourcemap: 'inline',
    // Files beside the program are found as if it ran where it stands.
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(path).href) },
    logLevel: 'silent',
  });
  return outfile;
}
