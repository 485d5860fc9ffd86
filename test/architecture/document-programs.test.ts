// Programs in documents are what people copy: each compiles in a project as a user has it, and prints what is said.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runProgram } from '../support/run-node.js';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

const documents = repositoryFiles.filter((path) => /^docs\/[^/]+\.md$/.test(path));
const programs = documents.flatMap((path) =>
  [...textOf(path).matchAll(/^```ts\n(.*?)^```$(?:\n\nIt prints:\n\n^```text\n(.*?)^```$)?/gms)].map(
    ([, text = '', prints], index) => ({ name: `${basename(path, '.md')}-${index}.ts`, text, prints }),
  ),
);
const printing = programs.flatMap(({ name, prints }) => (prints === undefined ? [] : [{ name, prints }]));
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-documents-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const options = { typeRoots: [join(ROOT, 'node_modules', '@types')] };
  // The package is compiled from its sources here, and so needs what they declare for a package without types.
  const include = ['*.ts', join(ROOT, 'src/transports/wire/protocol/snappyjs.d.ts')];
  const tsconfig = { extends: join(ROOT, 'tsconfig.json'), include, compilerOptions: options };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  for (const { name, text } of programs) writeFileSync(join(folder, name), text);
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

it('there are programs in the documents', () => {
  expect(programs.map(({ name }) => name)).toContain('wire-client-0.ts');
});

it('every program in the documents compiles', { timeout: 240_000 }, () => {
  expect(compile()).toBe('');
});

it('some programs in the documents say what they print', () => {
  expect(printing).not.toEqual([]);
});

it.each(printing)('$name prints what the document says', { timeout: 60_000 }, async ({ name, prints }) => {
  const tsconfig = join(folder, 'tsconfig.json');

  expect(await runProgram(join(folder, name), { tsconfig })).toEqual({ stdout: prints, stderr: '', exit: 0 });
});

it(
  'the service in observability.md ends in order at a signal, also without a collector',
  { timeout: 60_000 },
  async () => {
    const service = programs.find(({ text }) => text.includes('OTLPTraceExporter'))?.name ?? '';
    const env = {
      HEALTH_PORT: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    };
    const signal = { name: 'SIGTERM', after: 'charging' } as const;
    const { stdout, exit } = await runProgram(join(folder, service), {
      tsconfig: join(folder, 'tsconfig.json'),
      env,
      signal,
    });
    const lines = stdout
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));

    expect(exit).toBe(0);
    expect(lines.find(({ msg }) => msg === 'charging')).toMatchObject({
      order: 'A-1',
      trace_id: expect.any(String) as string,
    });
    expect(lines.map(({ msg }) => msg)).toContain('runtime closed');
  },
);

function compile(): string {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    return execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    // What is wrong stands on standard output.
    return (error as { readonly stdout: string }).stdout;
  }
}
