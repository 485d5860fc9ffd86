// `transaction-kills`: random programs with transactions on a durable embedded broker, each killed (kill -9) once or more: each
// transaction is there as a whole or not at all, whatever was cut.
import type { Campaign } from './campaign.js';
import { runTransactionKills } from './transaction-kills-run.js';
import type { TransactionKillTotals } from './transaction-kills-run.js';

const totals: TransactionKillTotals = { kills: 0, committed: 0, aborted: 0, cut: 0 };

export const transactionKillsCampaign: Campaign = {
  name: 'transaction-kills',
  says: 'random programs with transactions on a durable embedded broker (SQLite) are killed (kill -9): all or nothing, durable, isolated, nothing left',
  defaultRuns: 500,
  runLimitMs: 300_000,
  // Processes that start wait for the disk more than they work.
  atOnce: 2,
  run: (seed) => runTransactionKills(seed, totals),
  summary: () => {
    const { kills, committed, aborted, cut } = totals;
    return `${kills} kills, ${committed} transactions committed, ${aborted} aborted, ${cut} cut`;
  },
};
