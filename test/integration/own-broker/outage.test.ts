// The gate's share of the campaign `outage`: a shorter one, noticed sooner.
import { expect } from 'vitest';
import { runOutage } from '../../campaign/outage-run.js';
import { testWithBroker } from '../../support/real-pulsar/integration-test.js';

const test = testWithBroker();

/** Taken for dead after one second of silence; calls time out in the middle of it, and its return is seen at once. */
const QUICK_TO_NOTICE = {
  wire: { keepAliveMs: 500, connectTimeoutMs: 1_000, reconnectMinMs: 10, reconnectMaxMs: 500 },
  callTimeoutMs: 2_000,
};
const OUTAGE_MS = 5_000;

for (const how of ['frozen', 'killed'] as const) {
  test(`a broker that is ${how} in the middle of settlements leaves nothing unsettled`, async ({ broker }) => {
    const { violations, before, after } = await runOutage(broker, { how, durationMs: OUTAGE_MS, ...QUICK_TO_NOTICE });

    expect(violations).toEqual([]);
    expect(before).toBeLessThan(after);
  });
}
