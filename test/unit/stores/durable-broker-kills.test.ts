// A sample of the campaign `durable-kills`: receipts hold over `kill -9`.
import { expect, it } from 'vitest';
import { runDurableKills } from '../../support/durable/durable-kills.js';

it(
  'what a receipt was given for is there after kill -9: messages, and acknowledgements',
  { timeout: 60_000 },
  async () => {
    const totals = { kills: 0, published: 0, acknowledged: 0 };

    expect(await runDurableKills(1, 5, totals)).toEqual([]);
    expect(totals.kills).toBe(5);
    expect(totals.published).toBeGreaterThan(10);
    expect(totals.acknowledged).toBeGreaterThan(10);
  },
);
