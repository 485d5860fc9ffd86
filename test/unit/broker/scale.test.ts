// At 10,000 messages, where what is linear takes ten times the steps and what is logarithmic a third more. 100,000 and a
// million take minutes: `npm run campaign -- broker-scale`.
import { describe, expect, it } from 'vitest';
import { runProgram } from '../../support/run-node.js';
import { SCALE_OPERATIONS } from '../../support/broker-scale/scale-operations.js';
import type { OperationSteps } from '../../support/broker-scale/step-growth.js';
import { fasterThanLog } from '../../support/broker-scale/step-growth.js';

const MANY_MS = 120_000;
const BYTES_PER_MESSAGE = 300;

describe('the embedded broker with many messages', () => {
  it(
    'takes steps per message, or per call, that grow at most with the logarithm of their number',
    async () => {
      const { stdout, stderr } = await runProgram('test/support/broker-scale/scale-program.ts', {
        args: ['1000', '10000'],
      });
      expect(stderr).toBe('');
      const operations = JSON.parse(stdout) as OperationSteps[];
      expect(operations.map(({ name }) => name)).toEqual(SCALE_OPERATIONS.map(({ name }) => name));
      expect(operations.flatMap(fasterThanLog)).toEqual([]);
    },
    MANY_MS,
  );

  it(
    `keeps a message that waits in ${BYTES_PER_MESSAGE} bytes beyond its payload`,
    async () => {
      const { stdout } = await runProgram('test/support/broker-scale/memory-program.ts', { args: ['50000'] });
      const bytes = Object.values(JSON.parse(stdout) as Record<string, number>);
      expect(bytes).toHaveLength(2);
      for (const each of bytes) expect(each).toBeLessThan(BYTES_PER_MESSAGE);
    },
    MANY_MS,
  );
});

describe('the check of growth', () => {
  const grown = (...steps: number[]): string[] =>
    fasterThanLog({ name: 'x', per: 'call', sizes: [1_000, 10_000, 100_000], steps });

  it('lets pass what grows with the logarithm', () => {
    expect(grown(30, 40, 50)).toEqual([]);
  });

  it('names what grows faster, and what was not counted', () => {
    expect(grown(30, 60, 50)).toEqual(['x: 60.0 steps per call at 10000 messages, 30.0 at 1000']);
    expect(grown(0, 0, 0)).toEqual(['x: no steps were counted at 1000 messages']);
  });
});
