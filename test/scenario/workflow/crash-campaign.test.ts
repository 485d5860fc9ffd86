// The gate's share of the campaign `workflow-crashes`, and the proof that its checks see what they are there for: each mistake that
// is built in on purpose is told.
import { beforeAll, expect, it } from 'vitest';
import type { CountedBase } from '../../support/workflow-crash/generator.js';
import { programOf, seedsOfAllCuts } from '../../support/workflow-crash/generator.js';
import type { Mistake } from '../../support/workflow-crash/program.js';
import { MISTAKES } from '../../support/workflow-crash/program.js';
import { countedBases, explained, runCrash } from '../../support/workflow-crash/workflow-crash.js';

const RUNS = 100;
/** So that what is cut here is spread over all calls. */
const SEED_STRIDE = 131;

let bases: readonly CountedBase[];
beforeAll(async () => {
  bases = await countedBases();
});

it('workflows end right whatever goes wrong', { timeout: 120_000 }, async () => {
  const violations: string[] = [];
  for (let n = 1; n <= RUNS && violations.length === 0; n++) {
    const seed = n * SEED_STRIDE;
    const program = programOf(seed, bases);
    const run = await runCrash(program);
    for (const each of await explained(program, run.violations)) violations.push(`seed ${seed}: ${each}`);
  }

  expect(violations).toEqual([]);
});

it('each call of each base program goes wrong in each way, exactly once', () => {
  const programs = new Set<string>();
  const seeds = seedsOfAllCuts(bases);
  for (let seed = 2; seed <= seeds; seed += 2) programs.add(JSON.stringify(programOf(seed, bases)));

  expect(programs.size).toBe(seeds / 2);
});

const SAYS: Readonly<Record<Mistake, RegExp>> = {
  'forgets-results': /ran again after its end had been recorded|is blocked/,
  'accepts-any-epoch': /was taken under epoch/,
  'swaps-compensations': /has undone release A, refund A; right: refund A|has undone refund A, release A; right/,
  'skips-a-compensation': /has undone (release A)?; right: (release A, )?refund A/,
  'wakes-nobody': /has not ended/,
  'acts-outside-steps': /was done outside of any step/,
  'answers-wrongly': /the result of fulfil-order A is/,
  'renames-messages': /the messages of receipts are/,
};

it.each(MISTAKES)('a service or a store that %s is found out', { timeout: 60_000 }, async (mistake) => {
  const found: string[] = [];
  for (let seed = 1; seed < 200 && !SAYS[mistake].test(found.join('\n')); seed++) {
    const { violations } = await runCrash(programOf(seed, bases), mistake);
    found.push(...violations);
  }

  expect(found.join('\n')).toMatch(SAYS[mistake]);
});
