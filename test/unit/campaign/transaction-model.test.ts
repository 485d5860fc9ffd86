// That the transaction model sees what it is to see: faults built in on purpose are found in few programs, each by its rule.
import { describe, expect, it } from 'vitest';
import { BREAKAGES } from '../../support/transaction-model/breakages.js';
import type { Breakage } from '../../support/transaction-model/breakages.js';
import { programOf } from '../../support/transaction-model/generator.js';
import { NOTICES, isCalm } from '../../support/transaction-model/program.js';
import type { Program } from '../../support/transaction-model/program.js';
import { shrunk } from '../../support/transaction-model/shrink.js';
import { runModel } from '../../support/transaction-model/transaction-model.js';

const MOST_RUNS = 150;

/** How many programs it takes to find it by one of its rules; undefined: it is not found. */
async function runsUntilFound({ make, rules }: Breakage): Promise<number | undefined> {
  const mend = make();
  try {
    for (let seed = 1; seed <= MOST_RUNS; seed++) {
      const { violations } = await runModel(programOf(seed));
      if (violations.some(({ rule }) => rules.includes(rule))) return seed;
    }
    return undefined;
  } finally {
    mend();
  }
}

describe('a fault that is built in on purpose', () => {
  it.each(BREAKAGES.map((breakage) => [breakage.what, breakage] as const))('%s', async (_, breakage) => {
    expect(await runsUntilFound(breakage)).toBeDefined();
  });
});

describe('a random program', () => {
  it('is the same for the same seed, with each kind of step in some', async () => {
    expect(programOf(7)).toEqual(programOf(7));
    const programs = Array.from({ length: 300 }, (_, seed) => programOf(seed));
    expect(new Set(programs.flatMap(({ steps }) => steps.map((step) => step.do))).size).toBe(14);
    expect(new Set(programs.map(({ setting }) => setting.notices)).size).toBe(NOTICES.length);
    const calm = programs.filter(isCalm).length;
    expect([calm > 60, calm < 240]).toEqual([true, true]);
    const [first, second] = [await runModel(programOf(7)), await runModel(programOf(7))];
    expect(second.story).toEqual(first.story);
  });

  it('is made as small as it still violates its rule', async () => {
    const program = programOf(3);
    const violates = async ({ steps }: Program): Promise<boolean> =>
      steps.some((step) => step.do === 'publish') && steps.some((step) => step.do === 'begin');
    const { setting, steps } = await shrunk(program, violates, 2_000);
    expect(setting).toMatchObject({ topics: [[expect.any(String)]], notices: 'all', latency: 0 });
    expect(steps.map((step) => step.do).sort()).toEqual(['begin', 'publish']);
  });
});
