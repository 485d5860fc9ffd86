// A sample of the campaign `transaction-kills`: random programs with transactions on a durable embedded broker are killed.
import { expect, it } from 'vitest';
import { runTransactionKills } from '../../campaign/transaction-kills-run.js';

const SEEDS = [20_261_130, 20_261_131, 20_261_132];
const LIMIT_MS = 120_000;

it(
  'random programs over kills: each transaction is there as a whole or not at all, and nothing is left of any',
  async () => {
    const totals = { kills: 0, committed: 0, aborted: 0, cut: 0 };
    for (const seed of SEEDS) expect(await runTransactionKills(seed, totals), `seed ${seed}`).toEqual([]);
    expect(totals.committed).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
