// vitest projects of the tests that need a real Pulsar. They come after all others and apart: a broker takes memory and
// processor time that would disturb the rest. Limits are three times what was seen on an overloaded machine.
import { fileURLToPath } from 'node:url';

const support = (name: string): string => fileURLToPath(new URL(`../support/real-pulsar/${name}`, import.meta.url));

/** Tests on the one broker of the run, and the file of those that stop theirs. */
const shared = {
  extends: true as const,
  test: {
    name: 'integration',
    include: ['test/integration/**/*.test.ts', 'test/conformance/{wire,pulsar}.test.ts'],
    // Conformance cases wait more than they work; each has topics of its own.
    maxConcurrency: 12,
    exclude: ['**/node_modules/**'],
    // As in the framework project: files of one worker share what it has loaded, and the outside clients it has started.
    isolate: false,
    globalSetup: [support('global-setup.ts')],
    // A real broker on a busy machine is late at times. A second try is shown in the report, and is a fault to look into.
    retry: 1,
    // They wait for the broker more than they work.
    maxWorkers: 4,
    testTimeout: 90_000,
    hookTimeout: 240_000,
    sequence: { groupOrder: 1 },
  },
};

export const integrationProjects = [shared];
