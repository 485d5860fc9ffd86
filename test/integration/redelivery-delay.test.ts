// The gate's share of the campaign `redelivery-delay`: how late is a matter of the machine, too early is not.
import { expect } from 'vitest';
import { test } from '../support/real-pulsar/integration-test.js';
import { earlyOrMissing, redeliveryDelays } from '../support/redelivery-delay.js';

test('what failed is asked for again once for each step of the backoff, never early', async ({ pulsar }) => {
  const delays = await redeliveryDelays(pulsar.serviceUrl, pulsar.newTopic(), { jobs: 30, gapMs: 5 });

  expect(earlyOrMissing(delays)).toEqual([]);
});
