// Who may import whom. The table is the whole rule; a folder that is not in it is refused until someone decides.
import { expect, it } from 'vitest';
import { filesUnder, importsOf, isTypeScript, parse } from './source-files.js';

interface Rule {
  /** Other parts this one may import. */
  readonly parts: readonly string[];
  /** Packages it may import; `node:` stands for all of Node's own modules. */
  readonly packages: readonly string[];
}

const SCHEMA = '@standard-schema/spec'; // types only, no code

/** An adapter (a folder below transports or stores) is a part of its own, so that none can import another. */
const RULES: Readonly<Record<string, Rule>> = {
  'src/core': { parts: [], packages: [SCHEMA] },
  'src/ports': { parts: ['src/core'], packages: [] },
  'src/system': { parts: ['src/ports', 'src/core'], packages: ['node:'] },
  'src/redelivery': { parts: ['src/ports', 'src/core'], packages: [] },
  'src/chunks': { parts: ['src/ports', 'src/core'], packages: [] },
  'src/transactions': { parts: ['src/ports', 'src/core'], packages: [] },
  'src/broker': { parts: ['src/ports', 'src/core'], packages: [] },
  'src/runtime': { parts: ['src/redelivery', 'src/system', 'src/ports', 'src/core'], packages: [SCHEMA] },
  'src/transports/embedded': {
    parts: ['src/broker', 'src/chunks', 'src/transactions', 'src/redelivery', 'src/system', 'src/ports', 'src/core'],
    packages: [],
  },
  'src/transports/wire': {
    parts: ['src/chunks', 'src/transactions', 'src/redelivery', 'src/system', 'src/ports', 'src/core'],
    packages: ['node:', 'lz4-wasm-nodejs', 'snappyjs', '@bokuweb/zstd-wasm'],
  },
  'src/transports/pulsar': {
    parts: ['src/system', 'src/ports', 'src/core'],
    packages: ['pulsar-client'],
  },
  'src/telemetry': { parts: ['src/ports', 'src/core'], packages: ['@opentelemetry/api'] },
  'src/stores/memory': { parts: ['src/ports', 'src/core'], packages: [] },
  'src/stores/file': { parts: ['src/ports', 'src/core'], packages: ['node:'] },
  // `better-sqlite3`, `libsql` and `node:sqlite` are loaded by a name that is found while the program runs.
  'src/stores/sqlite': { parts: ['src/ports', 'src/core'], packages: ['node:'] },
  // The pool is the user's: no driver is loaded.
  'src/stores/postgres': { parts: ['src/ports', 'src/core'], packages: ['node:'] },
  // The health endpoint needs Node's HTTP server, the slow handler warning the context of a run.
  'src/workflow': { parts: ['src/runtime', 'src/ports', 'src/core'], packages: [SCHEMA] },
  'src/plugins': { parts: ['src/ports', 'src/core'], packages: ['node:'] },
  'src/testing': {
    parts: [
      'src/transports/embedded',
      'src/workflow',
      'src/stores/memory',
      'src/runtime',
      'src/broker',
      'src/redelivery',
      'src/system',
      'src/ports',
      'src/core',
    ],
    packages: [],
  },
  // Entry points re-export the parts they stand for.
  'src/index.ts': {
    parts: ['src/runtime', 'src/redelivery', 'src/stores/memory', 'src/system', 'src/ports', 'src/core'],
    packages: [],
  },
  // It also picks where the transactions of a broker in memory are kept: brokers and transports know only ports.
  'src/embedded.ts': {
    parts: ['src/transports/embedded', 'src/broker', 'src/stores/memory', 'src/core'],
    packages: [],
  },
  'src/pulsar.ts': { parts: ['src/transports/pulsar'], packages: [] },
  'src/wire.ts': { parts: ['src/transports/wire', 'src/ports', 'src/core'], packages: [] },
  // It also picks what fits the stores of this system: those know only ports.
  'src/file.ts': { parts: ['src/stores/file', 'src/system', 'src/ports'], packages: [] },
  // The same: the clock.
  'src/sqlite.ts': { parts: ['src/stores/sqlite', 'src/runtime', 'src/system', 'src/ports', 'src/core'], packages: [] },
  'src/postgres.ts': {
    parts: ['src/stores/postgres', 'src/runtime', 'src/system', 'src/ports', 'src/core'],
    packages: [],
  },
  // The same: signals of this process.
  'src/plugins.ts': { parts: ['src/plugins', 'src/system', 'src/ports'], packages: [] },
  'src/workflow.ts': { parts: ['src/workflow', 'src/stores/memory', 'src/ports', 'src/core'], packages: [] },
  'src/otel.ts': { parts: ['src/telemetry'], packages: [] },
  // Of the broker the types of `inject`.
  'src/testing.ts': { parts: ['src/testing', 'src/broker', 'src/stores/memory'], packages: [] },
  // Sugar: sees what a user sees. Only the entry point for inversify loads inversify.
  'decorators/inversify.ts': { parts: ['src/index.ts'], packages: ['inversify'] },
  decorators: { parts: ['src/index.ts'], packages: [SCHEMA] },
  examples: {
    parts: [],
    packages: [
      'pulsework',
      'inversify',
      'reflect-metadata',
      'zod',
      'valibot',
      'vitest',
      'pg',
      '@opentelemetry',
      'node:',
    ],
  },
};

const ENTRY_FILES = Object.keys(RULES).filter(isTypeScript);

/** The part a file belongs to: an entry of the table, or the folder that is missing in it. */
function partOf(path: string): string {
  if (ENTRY_FILES.includes(path)) return path;
  const folders = path.split('/').slice(0, -1);
  if (folders[0] !== 'src') return folders[0] ?? '';
  const hasAdapters = folders[1] === 'transports' || folders[1] === 'stores';
  return folders.slice(0, hasAdapters ? 3 : 2).join('/');
}

function mayImport(part: string, imported: string): boolean {
  const rule = RULES[part];
  if (rule === undefined) return false;
  const target = /^(src|decorators|examples|test)\//.test(imported) ? partOf(imported) : undefined;
  if (target !== undefined) return target === part || rule.parts.includes(target);
  return rule.packages.some((name) =>
    name === 'node:' ? imported.startsWith('node:') : imported === name || imported.startsWith(`${name}/`),
  );
}

const sources = filesUnder('src', 'decorators', 'examples').filter(isTypeScript);

it('every source file belongs to a part that the table knows', () => {
  const unknown = sources.filter((path) => RULES[partOf(path)] === undefined);

  expect(unknown).toEqual([]);
});

it.each(Object.keys(RULES))('%s imports only what the table allows', (part) => {
  const files = sources.filter((path) => partOf(path) === part);
  const forbidden = files.flatMap((path) =>
    importsOf(path)
      .filter((imported) => !mayImport(part, imported))
      .map((imported) => `${path} imports ${imported}`),
  );

  expect(forbidden).toEqual([]);
});

it('the table would refuse a wrong direction, another adapter and a stray package', () => {
  expect(mayImport('src/core', 'src/runtime/runtime.ts')).toBe(false);
  expect(mayImport('src/runtime', 'src/transports/embedded/embedded-transport.ts')).toBe(false);
  expect(mayImport('src/transports/embedded', 'src/transports/wire/wire-transport.ts')).toBe(false);
  expect(mayImport('src/runtime', 'node:timers')).toBe(false);
  expect(mayImport('decorators', 'src/core/topic.ts')).toBe(false);
  expect(mayImport('decorators', 'inversify')).toBe(false);
});

it('the search finds every kind of import, and nothing in texts', () => {
  const text = `
    import a from './a.js';
    import type { B } from '../b.js';
    import 'side-effect';
    export { c } from './c.js';
    export * from 'star';
    type D = import('./d.js').D;
    await import('lazy');
    const text = "import e from './e.js'";
  `;

  expect(importsOf('src/core/here.ts', parse(text))).toEqual([
    'src/core/a.ts',
    'src/b.ts',
    'side-effect',
    'src/core/c.ts',
    'star',
    'src/core/d.ts',
    'lazy',
  ]);
});
