// The conformance suite over the wire on a real Pulsar, in real time.
import { conformanceCases } from 'pulsework/testing';
import { describe } from 'vitest';
import { test } from '../support/real-pulsar/integration-test.js';
import { runOnRealBroker, wireHarness } from './real-broker-harness.js';

describe.concurrent('wire', () => {
  for (const conformanceCase of conformanceCases) {
    const { title, needs = [], realTime = 'gate' } = conformanceCase;
    if (realTime !== 'gate') test(title, ({ skip }) => skip(`${realTime.only}: ${realTime.reason}`));
    else if (needs.includes('transactions'))
      test(title, ({ skip }) =>
        skip('the shared broker has no transactions: test/integration/own-broker-transactions.test.ts runs it'),
      );
    else if (needs.includes('producer-batches'))
      test(title, ({ pulsar, java, skip }) => runOnRealBroker(conformanceCase, wireHarness(pulsar, java), skip));
    else test(title, ({ pulsar, skip }) => runOnRealBroker(conformanceCase, wireHarness(pulsar), skip));
  }
});
