// The conformance suite on the embedded broker, in virtual time.
import type { ConformanceHarness } from 'pulsework/testing';
import { FakeClock, conformanceCases, missingFor, runConformanceCase } from 'pulsework/testing';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { deadLetterTopicName } from 'pulsework';
import { test } from 'vitest';
import { readAll } from './read-all.js';

function embeddedHarness(): ConformanceHarness {
  const clock = new FakeClock();
  const broker = new EmbeddedBroker({ clock });
  let topics = 0;
  return {
    clock,
    newTransport: async () => embedded({ broker }),
    newTopic: async (partitions) => {
      topics += 1;
      const topic = broker.fullName(`topic-${topics}`);
      if (partitions > 0) broker.createPartitionedTopic(topic, partitions);
      return topic;
    },
    elapse: (ms) => clock.advanceBy(ms),
    publishBatch: (topic, messages) => broker.publishBatch(topic, messages),
    statistics: async (topic, subscription) => {
      const stats = broker.stats(topic).subscriptions.get(subscription);
      return {
        backlog: stats?.backlog ?? 0,
        unacknowledged: stats?.unacked ?? 0,
        permits: Object.fromEntries(stats?.consumers.map(({ name, permits }) => [name, permits]) ?? []),
      };
    },
    unload: async (topic) => broker.unload(topic),
    readDeadLetters: (topic, subscription) =>
      readAll(embedded({ broker }), deadLetterTopicName(topic, subscription), () => clock.advanceBy(1)),
  };
}

for (const conformanceCase of conformanceCases) {
  test(conformanceCase.title, async ({ skip }) => {
    const harness = embeddedHarness();
    const { capabilities } = await harness.newTransport();
    const missing = missingFor(conformanceCase, capabilities, harness);
    skip(missing !== undefined, missing);
    await runConformanceCase(conformanceCase, harness);
  });
}
