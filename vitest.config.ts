import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { integrationProjects } from './test/integration/projects.js';
import { LongestFirst } from './test/support/longest-first.js';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  // Legacy decorators, stated here too: the bundler reads the flag only for files that a tsconfig includes.
  oxc: { decorator: { legacy: true } },
  resolve: {
    alias: [
      { find: /^pulsework$/, replacement: at('./src/index.ts') },
      { find: /^pulsework\/decorators$/, replacement: at('./decorators/index.ts') },
      { find: /^pulsework\/inversify$/, replacement: at('./decorators/inversify.ts') },
      { find: /^pulsework\/embedded$/, replacement: at('./src/embedded.ts') },
      { find: /^pulsework\/wire$/, replacement: at('./src/wire.ts') },
      { find: /^pulsework\/pulsar$/, replacement: at('./src/pulsar.ts') },
      { find: /^pulsework\/otel$/, replacement: at('./src/otel.ts') },
      { find: /^pulsework\/file$/, replacement: at('./src/file.ts') },
      { find: /^pulsework\/plugins$/, replacement: at('./src/plugins.ts') },
      { find: /^pulsework\/sqlite$/, replacement: at('./src/sqlite.ts') },
      { find: /^pulsework\/workflow$/, replacement: at('./src/workflow.ts') },
      { find: /^pulsework\/postgres$/, replacement: at('./src/postgres.ts') },
      { find: /^pulsework\/testing$/, replacement: at('./src/testing.ts') },
    ],
  },
  test: {
    // Each project says what it includes: lists of the root would be added to theirs.
    projects: [
      {
        extends: true,
        test: {
          name: 'framework',
          include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
          exclude: ['**/node_modules/**', 'test/{integration,postgres}/**', 'test/conformance/{wire,pulsar}.test.ts'],
          // Files share what their worker has loaded: loading it anew for each would take a third of the time. So a test
          // takes back whatever it registers for the whole process.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ['test/postgres/**/*.test.ts'],
          isolate: false,
          globalSetup: [at('./test/support/postgres/global-setup.ts')],
        },
      },
      ...integrationProjects,
    ],
    // Three projects need the same files: each is compiled for the first of them, and kept.
    experimental: { fsModuleCache: true },
    passWithNoTests: false,
    sequence: { sequencer: LongestFirst },
    // All of them: vitest leaves one processor free, which is half of a small machine.
    maxWorkers: availableParallelism(),
    testTimeout: 20_000,
    env: { PULSEWORK_LOG_LEVEL: 'silent' },
    typecheck: { enabled: false },
  },
});
