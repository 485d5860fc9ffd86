// A sample of the campaign `transactions`: random programs of clients, deaths, failing calls and lost notices, and those in which something
// was wrong once.
import { describe, expect, it } from 'vitest';
import { programOf } from '../../../support/transaction-model/generator.js';
import type { Program } from '../../../support/transaction-model/program.js';
import { REGRESSIONS } from '../../../support/transaction-model/regressions.js';
import { explained, runModel } from '../../../support/transaction-model/transaction-model.js';

/** Each the first of ten. */
const SEEDS = [20_261_100, 20_261_110, 20_261_120, 20_261_130];

async function violationsOf(program: Program): Promise<readonly string[]> {
  return explained(program, (await runModel(program)).violations);
}

it.each(SEEDS)(
  'transactions are atomic, durable and isolated, and nothing is left of them, from seed %i on',
  async (first) => {
    for (let seed = first; seed < first + 10; seed++)
      expect(await violationsOf(programOf(seed)), `seed ${seed}`).toEqual([]);
  },
);

describe('what was wrong once', () => {
  it.each(REGRESSIONS)('$title', async ({ program }) => {
    expect(await violationsOf(program)).toEqual([]);
  });
});
