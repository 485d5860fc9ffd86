// The harness of the conformance suite on the shared real broker, in real time, whatever client is looked at. Batches are
// published by the Java client.
import { setTimeout as sleep } from 'node:timers/promises';
import type { EncodedMessage, Transport } from 'pulsework';
import { deadLetterTopicName, parseMessageId, systemClock } from 'pulsework';
import type { ConformanceCase, ConformanceHarness } from 'pulsework/testing';
import { missingFor, runConformanceCase } from 'pulsework/testing';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerMessage, PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import { readAll } from './read-all.js';

/** A real broker answers a reader that finds nothing by silence: this long is believed. */
const READ_WAIT_MS = 400;

export function realBrokerHarness(
  pulsar: SharedPulsar,
  newTransport: () => Promise<Transport>,
  java?: PulsarPeer,
): ConformanceHarness {
  return {
    clock: systemClock,
    newTransport,
    newTopic: async (partitions) => {
      const topic = pulsar.newTopic('conformance');
      if (partitions > 0) await pulsar.admin.createPartitionedTopic(topic, partitions);
      return topic;
    },
    elapse: (ms) => sleep(ms),
    publishBatch: java && ((topic, messages) => publishBatch(pulsar, java, topic, messages)),
    statistics: async (topic, subscription) => {
      const stats = (await pulsar.admin.stats(topic)).subscriptions[subscription];
      return {
        backlog: stats?.msgBacklog ?? 0,
        unacknowledged: stats?.unackedMessages ?? 0,
        permits: Object.fromEntries(stats?.consumers.map((c) => [c.consumerName, c.availablePermits]) ?? []),
      };
    },
    unload: async (topic) => {
      await pulsar.admin.unload(topic);
    },
    readDeadLetters: async (topic, subscription) =>
      readAll(await newTransport(), deadLetterTopicName(topic, subscription), () => sleep(READ_WAIT_MS)),
  };
}

/** Runs a case, or skips it where the transport or the harness lacks what it needs. */
export async function runOnRealBroker(
  conformanceCase: ConformanceCase,
  harness: ConformanceHarness,
  skip: (condition: boolean, reason?: string) => void,
): Promise<void> {
  const { capabilities } = await harness.newTransport();
  const missing = missingFor(conformanceCase, capabilities, harness);
  skip(missing !== undefined, missing);
  await runConformanceCase(conformanceCase, harness);
}

/** All messages of one call are one entry. */
async function publishBatch(
  pulsar: SharedPulsar,
  java: PulsarPeer,
  topic: string,
  messages: readonly EncodedMessage[],
): ReturnType<NonNullable<ConformanceHarness['publishBatch']>> {
  const sent = await java.produce(pulsar.serviceUrl, topic, messages.map(peerMessage), { batching: 'on' });
  return sent.map(({ id }) => ({ ...parseMessageId(id, topic), batchSize: messages.length }));
}

function peerMessage({ payload, key, orderingKey, properties, eventTimeMs }: EncodedMessage): PeerMessage {
  if (key instanceof Uint8Array) throw new Error('the Java peer publishes keys in text only');
  return { value: payload, key, orderingKey, properties, eventTimeMs };
}
