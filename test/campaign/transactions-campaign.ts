// `transactions`: random programs of clients, deaths, failing calls and lost notices on the transactions of the embedded broker, in
// virtual time. The rules are in `test/support/transaction-model/transaction-model.ts`.
import { programOf } from '../support/transaction-model/generator.js';
import { explained, runModel } from '../support/transaction-model/transaction-model.js';
import type { Campaign } from './campaign.js';

const seen = { transactions: 0, committed: 0, deaths: 0 };

export const transactionsCampaign: Campaign = {
  name: 'transactions',
  says: 'random programs of transactions on the embedded broker, which dies at any store call: all or nothing, durable, isolated, nothing left',
  defaultRuns: 50_000,
  // One that violates a rule is made smaller, in up to 1,500 runs.
  runLimitMs: 600_000,
  async run(seed) {
    const program = programOf(seed);
    const { violations, transactions, deaths } = await runModel(program);
    seen.transactions += transactions.length;
    seen.committed += transactions.filter((state) => state === 'COMMITTED').length;
    seen.deaths += deaths;
    return explained(program, violations);
  },
  summary: () => `${seen.transactions} transactions, ${seen.committed} of them committed, ${seen.deaths} deaths`,
};
