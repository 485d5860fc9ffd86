// The gate's sample of the campaign `outbox-kills`.
import { expect } from 'vitest';
import { runOutboxKills } from '../support/outbox-kills/outbox-kills.js';
import { test } from '../support/postgres/postgres-test.js';

for (const [seed, broker] of [
  [2, 'a broker that deduplicates'],
  [3, 'one that does not'],
] as const)
  test(
    `two relays are killed in turn, to ${broker}: nothing is lost, keys keep the order of commits`,
    { timeout: 60_000 },
    async ({ postgres }) => {
      const totals = { committed: 0, rolledBack: 0, kills: 0, repeats: 0 };
      expect(await runOutboxKills(seed, 2, postgres, totals)).toEqual([]);
      expect(totals.kills).toBe(2);
      expect(totals.committed).toBeGreaterThan(50);
    },
  );
