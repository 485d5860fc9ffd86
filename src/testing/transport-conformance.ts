// The conformance suite for transports, as data: the same cases for every adapter of the port `Transport`, whatever
// runs them. `conformanceCases` are the cases, `runConformanceCase` runs one on a harness.
import { accessModeCases } from './conformance/access-mode-cases.js';
import { ackTimeoutCases } from './conformance/ack-timeout-cases.js';
import { acknowledgementCases } from './conformance/acknowledgement-cases.js';
import { administrationCases } from './conformance/administration-cases.js';
import { batchCases } from './conformance/batch-cases.js';
import { chunkCases } from './conformance/chunk-cases.js';
import { clientDelayCases } from './conformance/client-delay-cases.js';
import type { ConformanceCase, ConformanceHarness } from './conformance/conformance-case.js';
import { ConformanceWorld } from './conformance/conformance-world.js';
import { contentCases } from './conformance/content-cases.js';
import { deadLetterCases } from './conformance/dead-letter-cases.js';
import { delayedDeliveryCases } from './conformance/delayed-delivery-cases.js';
import { flowCases } from './conformance/flow-cases.js';
import { keyOrderCases } from './conformance/key-order-cases.js';
import { keySharedCases } from './conformance/key-shared-cases.js';
import { negativeAckCases } from './conformance/negative-ack-cases.js';
import { openingCases } from './conformance/opening-cases.js';
import { redeliveryCases } from './conformance/redelivery-cases.js';
import { restartCases } from './conformance/restart-cases.js';
import { retryLetterCases } from './conformance/retry-letter-cases.js';
import { runtimeCases } from './conformance/runtime-cases.js';
import { seekCases } from './conformance/seek-cases.js';
import { settlementCases } from './conformance/settlement-cases.js';
import { singleActiveCases } from './conformance/single-active-cases.js';
import { topicCases } from './conformance/topic-cases.js';
import { transactionCases } from './conformance/transaction-cases.js';
import { transactionalAckCases } from './conformance/transactional-ack-cases.js';
import { unloadCases } from './conformance/unload-cases.js';

/** Titles are unique. Cases share nothing: they may run in any order and at the same time. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...openingCases,
  ...acknowledgementCases,
  ...batchCases,
  ...chunkCases,
  ...redeliveryCases,
  ...singleActiveCases,
  ...flowCases,
  ...keySharedCases,
  ...keyOrderCases,
  ...delayedDeliveryCases,
  ...seekCases,
  ...contentCases,
  ...topicCases,
  ...runtimeCases,
  ...unloadCases,
  ...retryLetterCases,
  ...negativeAckCases,
  ...deadLetterCases,
  ...clientDelayCases,
  ...ackTimeoutCases,
  ...settlementCases,
  ...administrationCases,
  ...accessModeCases,
  ...restartCases,
  ...transactionCases,
  ...transactionalAckCases,
];

/**
 * Runs one case and closes what it opened, also when it fails.
 * @throws ConformanceFailure saying what was expected and what came; what the transport itself throws is passed on.
 */
export async function runConformanceCase(conformanceCase: ConformanceCase, harness: ConformanceHarness): Promise<void> {
  const world = new ConformanceWorld(harness);
  try {
    await conformanceCase.run(world);
  } finally {
    await world.close();
  }
}
