// The harness of the conformance suite on the shared real broker, in real time, whatever client is looked at. Batches are
// published by the Java client.
import { setTimeout as sleep } from 'node:timers/promises';
import type { EncodedMessage, MessageId, Transport } from '../../src/index.js';
import { deadLetterTopicName, parseMessageId, systemClock } from '../../src/index.js';
import type { ConformanceCase, ConformanceHarness } from '../../src/testing.js';
import { missingFor, runConformanceCase } from '../../src/testing.js';
import type { WireTransport } from '../../src/wire.js';
import { WireClient, wire } from '../../src/wire.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { AdminCallError } from '../support/real-pulsar/pulsar-admin.js';
import type { PeerMessage, PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import { readAll } from './read-all.js';

/** A real broker answers a reader that finds nothing by silence: this long is believed. */
const READ_WAIT_MS = 400;
/** How long a policy of a topic may take to act, and how often it is looked whether it does. */
const POLICY_LIMIT_MS = 15_000;
const PROBE_EVERY_MS = 50;
/** What the broker answers instead of deleting. */
const CONSUMERS_CONNECTED = 412;

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
    publishChunked: (topic, message, maxChunkBytes) => publishChunked(pulsar, topic, message, maxChunkBytes),
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
    terminate: async (topic) => {
      const { ledgerId, entryId } = await pulsar.admin.terminate(topic);
      return { ledgerId, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic };
    },
    grow: async (topic, partitions) => {
      await pulsar.admin.growPartitionedTopic(topic, partitions);
    },
    deduplicate: (topic) => deduplicate(pulsar, topic),
    expire: async (topic, subscription, olderThanMs) => {
      await pulsar.admin.expireMessages(topic, subscription, olderThanMs / 1_000);
    },
    deleteSubscription: async (topic, subscription) => {
      try {
        await pulsar.admin.deleteSubscription(topic, subscription);
        return true;
      } catch (error) {
        if (error instanceof AdminCallError && error.status === CONSUMERS_CONNECTED) return false;
        throw error;
      }
    },
    deleteTopic: async (topic) => {
      await pulsar.admin.deleteTopic(topic);
    },
    readDeadLetters: async (topic, subscription) =>
      readAll(await newTransport(), deadLetterTopicName(topic, subscription), () => sleep(READ_WAIT_MS)),
  };
}

/** The same over the wire, which can do what the port `Transport` has no word for. */
export function wireHarness(pulsar: SharedPulsar, java?: PulsarPeer): ConformanceHarness {
  const { serviceUrl } = pulsar;
  return {
    ...realBrokerHarness(pulsar, async () => wire({ serviceUrl }), java),
    publisherAs: (transport, topic, accessMode) =>
      (transport as WireTransport).client.publisher(topic, { batching: { maxDelayMs: 0 }, accessMode }),
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

/** The policy acts some time after it was set: until a repetition is dropped. */
async function deduplicate(pulsar: SharedPulsar, topic: string): Promise<void> {
  await pulsar.admin.createTopic(topic);
  await pulsar.admin.topicPolicy(topic, 'deduplicationEnabled', true);
  const client = new WireClient({ serviceUrl: pulsar.serviceUrl });
  try {
    const probe = await client.publisher(topic, { producerName: 'probe' });
    const repeated = { payload: new Uint8Array(), properties: {} };
    const giveUpAt = Date.now() + POLICY_LIMIT_MS;
    while ((await probe.publish(repeated, 0)).ledgerId >= 0) {
      if (Date.now() > giveUpAt) throw new Error(`${topic} does not deduplicate within ${POLICY_LIMIT_MS} ms`);
      await sleep(PROBE_EVERY_MS);
    }
  } finally {
    await client.close();
  }
}

async function publishChunked(
  { serviceUrl }: SharedPulsar,
  topic: string,
  message: EncodedMessage,
  maxChunkBytes: number,
): Promise<MessageId> {
  const client = new WireClient({ serviceUrl });
  try {
    const publisher = await client.publisher(topic, { batching: false, chunking: true, maxChunkBytes });
    return await publisher.publish(message, publisher.nextSequenceId());
  } finally {
    await client.close();
  }
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
