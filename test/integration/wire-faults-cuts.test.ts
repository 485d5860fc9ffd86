// The gate's share of the campaign `wire-cuts`: the same runs, few of them.
import { expect } from 'vitest';
import { CutsPlace, runWireCuts } from '../campaign/wire-cuts-run.js';
import { replayCommand } from '../campaign/campaign.js';
import { test } from '../support/real-pulsar/integration-test.js';

/** About half a second each, three times as long on a busy machine. */
const SEEDS = [1, 2, 3, 4, 5, 6];

test('connections cut at random bytes, both ways, lose no message and keep the order', async ({ pulsar, proxy }) => {
  const place = await CutsPlace.prepare(pulsar, proxy);
  const violations: string[] = [];
  for (const seed of SEEDS) {
    const broken = await runWireCuts(seed, place);
    violations.push(...broken.map((each) => `${each}; replay: ${replayCommand({ name: 'wire-cuts' }, seed)}`));
  }
  await place.remove();

  expect(violations).toEqual([]);
  expect(place.totals.cuts).toBeGreaterThan(2 * SEEDS.length);
});
