// The conformance suite over the wire on a real Pulsar, in real time.
import { conformanceCases } from 'pulsework/testing';
import { wire } from 'pulsework/wire';
import { describe } from 'vitest';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { realBrokerHarness, runOnRealBroker } from './real-broker-harness.js';

const newTransport =
  ({ serviceUrl }: SharedPulsar) =>
  async () =>
    wire({ serviceUrl });

describe.concurrent('wire', () => {
  for (const conformanceCase of conformanceCases) {
    const { title, needs = [], realTime = 'gate' } = conformanceCase;
    if (realTime !== 'gate') test(title, ({ skip }) => skip(`${realTime.only}: ${realTime.reason}`));
    else if (needs.includes('producer-batches'))
      test(title, ({ pulsar, java, skip }) =>
        runOnRealBroker(conformanceCase, realBrokerHarness(pulsar, newTransport(pulsar), java), skip),
      );
    else
      test(title, ({ pulsar, skip }) =>
        runOnRealBroker(conformanceCase, realBrokerHarness(pulsar, newTransport(pulsar)), skip),
      );
  }
});
