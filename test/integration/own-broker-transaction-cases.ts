// The cases of the conformance suite that need transactions, over the wire on a broker that has them: the one that tests
// share has none.
import type { ConformanceCase } from '../../src/testing.js';
import { conformanceCases } from '../../src/testing.js';
import { runOnRealBroker, wireHarness } from '../conformance/real-broker-harness.js';
import type { testWithBroker } from '../support/real-pulsar/integration-test.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';

const CASES = conformanceCases.filter(({ needs = [] }) => needs.includes('transactions'));

export function transactionCaseTests(test: ReturnType<typeof testWithBroker>): void {
  for (const conformanceCase of CASES) {
    const { title, realTime = 'gate' } = conformanceCase;
    if (realTime !== 'gate') test(title, ({ skip }) => skip(`${realTime.only}: ${realTime.reason}`));
    else if (needsBatches(conformanceCase))
      test(title, ({ broker, java, skip }) =>
        runOnRealBroker(conformanceCase, wireHarness(asShared(broker), java), skip),
      );
    else test(title, ({ broker, skip }) => runOnRealBroker(conformanceCase, wireHarness(asShared(broker)), skip));
  }
}

function needsBatches({ needs = [] }: ConformanceCase): boolean {
  return needs.includes('producer-batches');
}

function asShared({ serviceUrl, adminUrl, proxies }: RealPulsar): SharedPulsar {
  return new SharedPulsar({ serviceUrl, adminUrl, proxies });
}
