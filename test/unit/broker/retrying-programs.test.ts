// Random programs of deliver, acknowledge, fail, return, ask back, join, leave, expire and unload on Key_Shared with
// colliding keys and batches, against a plain list of what failed.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProgramOptions, Step, StepKind } from './retrying-program.js';
import { RetryingProgram } from './retrying-program.js';

const KINDS: readonly StepKind[] = [
  ...(['publish', 'publish', 'publish', 'publish', 'batch', 'acknowledge', 'acknowledge', 'acknowledge'] as const),
  ...(['fail', 'fail', 'failAndReturn', 'failAndReturn', 'return', 'redeliver', 'redeliver', 'flow', 'flow'] as const),
  ...(['nameAny', 'flow', 'join', 'join', 'leave'] as const),
];
const RARE: readonly StepKind[] = ['expire', 'unload'];

const program = fc.array(
  fc.record({
    kind: fc.oneof(
      { weight: 40, arbitrary: fc.constantFrom(...KINDS) },
      { weight: 1, arbitrary: fc.constantFrom(...RARE) },
    ),
    pick: fc.nat(200),
  }),
  { minLength: 30, maxLength: 120, size: 'max' },
);

async function ran(steps: readonly Step[], options: ProgramOptions): Promise<RetryingProgram> {
  const run = new RetryingProgram(options);
  await run.run(steps);
  return run;
}

describe('under random programs', () => {
  it.each<[string, ProgramOptions]>([
    ['with the limits as they are', {}],
    ['with a ceiling of two failed entries', { keySharedMaxRetryingPositions: 2 }],
    [
      'where few may be unacknowledged or put aside',
      { maxUnackedPerConsumer: 6, keySharedLookAheadPerSubscription: 5 },
    ],
  ])(
    'K-20: nothing later of a hash is sent while an earlier failed one is not acknowledged, and all drains: %s',
    async (_what, options) => {
      await fc.assert(
        fc.asyncProperty(program, async (steps) => {
          expect((await ran(steps, options)).violations).toEqual([]);
        }),
        { numRuns: 60, seed: 493 },
      );
    },
  );

  it('K-31: with the switch off all is sent as if nobody had named what failed', async () => {
    let differences = 0;
    await fc.assert(
      fc.asyncProperty(program, async (steps) => {
        const off = await ran(steps, { keySharedNegativeAckOrdering: false });
        const unnamed = await ran(steps, { namesFailed: false });
        expect([off.trace, off.violations]).toEqual([unnamed.trace, unnamed.violations]);
        if ((await ran(steps, {})).trace.join() !== off.trace.join()) differences += 1;
      }),
      { numRuns: 30, seed: 494 },
    );
    // With the switch on the same programs go otherwise: the comparison is one of something.
    expect(differences).toBeGreaterThan(10);
  });
});
