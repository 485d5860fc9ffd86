// The gate's share of the campaign `kill`: the same run, with fewer kills.
import { expect } from 'vitest';
import { runKills } from '../campaign/kill-run.js';
import type { KillTotals } from '../campaign/kill-run.js';
import { test } from '../support/real-pulsar/integration-test.js';

const KILLS = 2;
const SEED = 2;
/** About 15 s; each start of a process takes seconds on a busy machine. */
const LIMIT_MS = 240_000;

test(
  'a service that is killed in the middle of its work loses no message',
  { timeout: LIMIT_MS },
  async ({ pulsar }) => {
    const totals: KillTotals = { kills: 0, jobs: 0, underWay: 0, repeated: 0 };

    expect(await runKills(SEED, KILLS, pulsar, totals)).toEqual([]);
    expect(totals).toMatchObject({ kills: KILLS, underWay: expect.toSatisfy((runs: number) => runs > 0) as number });
  },
);
