// The conformance suite on the embedded broker, in virtual time.
import type { ConformanceHarness } from 'pulsework/testing';
import { FakeClock, conformanceCases, missingFor, runConformanceCase } from 'pulsework/testing';
import type { EmbeddedTransport } from 'pulsework/embedded';
import { EmbeddedBroker, embedded, memoryMetadataStore } from 'pulsework/embedded';
import { TransportError, deadLetterTopicName } from 'pulsework';
import { test } from 'vitest';
import { readAll } from './read-all.js';

function embeddedHarness(deduplication: boolean): ConformanceHarness {
  const clock = new FakeClock();
  const broker = new EmbeddedBroker({ clock, deduplication, transactions: { store: memoryMetadataStore() } });
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
    publishChunked: async (topic, message, maxChunkBytes) => {
      const publisher = await embedded({ broker }).publisher(topic, { chunking: true, maxChunkBytes });
      const id = await publisher.publish(message, publisher.nextSequenceId());
      await publisher.close();
      return id;
    },
    statistics: async (topic, subscription) => {
      const stats = broker.stats(topic).subscriptions.get(subscription);
      return {
        backlog: stats?.backlog ?? 0,
        unacknowledged: stats?.unacked ?? 0,
        permits: Object.fromEntries(stats?.consumers.map(({ name, permits }) => [name, permits]) ?? []),
      };
    },
    unload: async (topic) => broker.unload(topic),
    terminate: async (topic) => {
      const last = broker.terminate(topic).get(topic);
      if (last === undefined) throw new Error(`${topic} holds no message`);
      return last;
    },
    grow: async (topic, partitions) => broker.growPartitions(topic, partitions),
    // An option of the broker, for all of its topics.
    deduplicate: deduplication ? async () => undefined : undefined,
    expire: async (topic, subscription, olderThanMs) => broker.expireMessages(topic, subscription, olderThanMs),
    deleteSubscription: async (topic, subscription) => {
      try {
        broker.deleteSubscription(topic, subscription);
        return true;
      } catch (error) {
        if (error instanceof TransportError && error.code === 'NOT_ALLOWED') return false;
        throw error;
      }
    },
    deleteTopic: async (topic) => broker.deleteTopic(topic, { force: true }),
    publisherAs: (transport, topic, accessMode) => (transport as EmbeddedTransport).publisher(topic, { accessMode }),
    restart: async () => broker.restart(),
    readDeadLetters: (topic, subscription) =>
      readAll(embedded({ broker }), deadLetterTopicName(topic, subscription), () => clock.advanceBy(1)),
  };
}

for (const conformanceCase of conformanceCases) {
  test(conformanceCase.title, async ({ skip }) => {
    const harness = embeddedHarness(conformanceCase.needs?.includes('deduplicate') === true);
    const { capabilities } = await harness.newTransport();
    const missing = missingFor(conformanceCase, capabilities, harness);
    skip(missing !== undefined, missing);
    await runConformanceCase(conformanceCase, harness);
  });
}
