// `durable-kills`: a process with a durable embedded broker dies by `kill -9` under load, again and again: what a receipt was
// given for is there, what was acknowledged with a receipt stays so, and the file is whole.
import { runDurableKills } from '../support/durable/durable-kills.js';
import type { DurableKillTotals } from '../support/durable/durable-kills.js';
import type { Campaign } from './campaign.js';

const KILLS_PER_RUN = 10;
const totals: DurableKillTotals = { kills: 0, published: 0, acknowledged: 0 };

export const durableKillsCampaign: Campaign = {
  name: 'durable-kills',
  says: `a durable embedded broker is killed (kill -9) ${KILLS_PER_RUN} times a run: all receipts hold, no corrupt file`,
  defaultRuns: 20,
  runLimitMs: 180_000,
  run: (seed) => runDurableKills(seed, KILLS_PER_RUN, totals),
  summary: () =>
    `${totals.kills} kills, ${totals.published} receipts of publishes, ${totals.acknowledged} of acknowledgements`,
};
