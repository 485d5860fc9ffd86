// A differential program on a real broker, over the wire. It cannot know when a broker has done everything, so it waits for
// what the embedded broker did, and for a moment where that was nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import type { EncodedMessage, MessageId } from 'pulsework';
import { WireClient, WireTransport } from 'pulsework/wire';
import { AdminCallError } from '../real-pulsar/pulsar-admin.js';
import type { TopicStats } from '../real-pulsar/pulsar-admin.js';
import type { SharedPulsar } from '../real-pulsar/shared-pulsar.js';
import type { DifferentialWorld, SubscriptionFigures } from './differential-world.js';

/** How long nothing must come for it to be believed that nothing will. */
const QUIET_MS = 100;
const LOOK_AGAIN_MS = 15;

/** @param topic full name. @param patienceMs how long what must come may take. */
export async function wireWorld(pulsar: SharedPulsar, topic: string, patienceMs: number): Promise<DifferentialWorld> {
  const client = new WireClient({ serviceUrl: pulsar.serviceUrl });
  // What is published within one turn of the event loop is one entry, whatever the keys.
  const publisher = await client.publisher(topic, { batching: { maxDelayMs: 0, byKey: false } });
  const publishAll = (messages: readonly EncodedMessage[]): Promise<MessageId[]> =>
    Promise.all(messages.map((message) => publisher.publish(message)));
  return {
    transport: new WireTransport(client),
    publish: async (message) => {
      const [id] = await publishAll([message]);
      return id!;
    },
    publishBatch: publishAll,
    unload: async () => {
      await pulsar.admin.unload(topic);
    },
    trim: async () => {
      await pulsar.admin.trim(topic);
    },
    figures: async () => figuresOf(await statsOf(pulsar, topic)),
    pause: (ms) => sleep(ms),
    settle: async (isThere) => {
      const giveUpAt = Date.now() + patienceMs;
      while (!(await isThere()) && Date.now() < giveUpAt) await sleep(LOOK_AGAIN_MS);
    },
    comes: (promise, isExpected) => Promise.race([promise, sleep(isExpected ? patienceMs : QUIET_MS, undefined)]),
    close: () => client.close(),
  };
}

/** Undefined while nobody has loaded the topic. The precise backlog is counted, not estimated. */
async function statsOf(pulsar: SharedPulsar, topic: string): Promise<TopicStats | undefined> {
  const path = topic.replace('://', '/');
  try {
    return (await pulsar.admin.call('GET', `/${path}/stats?getPreciseBacklog=true`)) as TopicStats;
  } catch (error) {
    // 404: not loaded; 307, 412, 500, 503: it is just being unloaded.
    if (error instanceof AdminCallError) return undefined;
    throw error;
  }
}

function figuresOf(stats: TopicStats | undefined): ReadonlyMap<string, SubscriptionFigures> {
  const figures = Object.entries(stats?.subscriptions ?? {}).map(
    ([name, { msgBacklog, unackedMessages, consumers }]) => {
      const ofConsumers = consumers.map((each) => ({ name: each.consumerName, unacked: each.unackedMessages }));
      return [name, { backlog: msgBacklog, unacked: unackedMessages, consumers: ofConsumers }] as const;
    },
  );
  return new Map(figures);
}
