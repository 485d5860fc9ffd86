// The gate's share of the campaign `ordering-kills`: one of its runs.
import { expect } from 'vitest';
import { NO_TOTALS, runOrderingKills } from '../campaign/ordering-kills-run.js';
import type { OrderedTotals } from '../campaign/ordering-kills-run.js';
import { test } from '../support/real-pulsar/integration-test.js';

/** Three kills, and two more processes that join. */
const SEED = 4;
/** About 10 s; each start of a process takes seconds on a busy machine. */
const LIMIT_MS = 240_000;

test(
  'no message of a key passes an earlier one when processes are killed in the middle of their work',
  { timeout: LIMIT_MS },
  async ({ pulsar }) => {
    const totals: OrderedTotals = { ...NO_TOTALS };

    expect(await runOrderingKills(SEED, pulsar, totals)).toEqual([]);
    expect(totals.kills).toBeGreaterThan(0);
    expect(totals.moved).toBeGreaterThan(0);
  },
);
