// `transaction-kills`: a service that works in transactions on a durable embedded broker is killed (kill -9) again and again: of
// each job there is one result and one entry in the journal, whatever was cut.
import type { Campaign } from './campaign.js';
import { runTransactionKills } from './transaction-kills-run.js';
import type { TransactionKillTotals } from './transaction-kills-run.js';

const KILLS_PER_RUN = 10;

const totals: TransactionKillTotals = { kills: 0, committed: 0, aborted: 0, cut: 0 };

export const transactionKillsCampaign: Campaign = {
  name: 'transaction-kills',
  says: `a service with transactions on a durable embedded broker is killed (kill -9) ${KILLS_PER_RUN} times a run: each job has one result`,
  defaultRuns: 50,
  runLimitMs: 600_000,
  run: (seed) => runTransactionKills(seed, KILLS_PER_RUN, totals),
  summary: () => {
    const { kills, committed, aborted, cut } = totals;
    return `${kills} kills, ${committed} transactions committed, ${aborted} aborted, ${cut} cut`;
  },
};
