// A sample of the campaign `transaction-kills`: a service that works in transactions on a durable embedded broker is killed.
import { expect, it } from 'vitest';
import { runTransactionKills } from '../../campaign/transaction-kills-run.js';

const KILLS = 2;
const LIMIT_MS = 120_000;

it(
  'of each job there is one result and one entry in the journal, and no trace of what was aborted, over kills',
  async () => {
    const totals = { kills: 0, committed: 0, aborted: 0, cut: 0 };
    expect(await runTransactionKills(20_261_130, KILLS, totals)).toEqual([]);
    expect(totals.committed).toBeGreaterThan(0);
  },
  LIMIT_MS,
);
