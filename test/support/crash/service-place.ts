// Where a service of `service-jobs.ts` works on a real broker: topics of its own, jobs on them, what is left there.
import { randomUUID } from 'node:crypto';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { deadLetterTopicName, retryTopicName } from '../../../src/index.js';
import { WireClient } from '../../../src/wire.js';
import { AdminCallError } from '../real-pulsar/pulsar-admin.js';
import type { PulsarAdmin } from '../real-pulsar/pulsar-admin.js';
import { receive } from '../received.js';
import type { Job } from './service-jobs.js';
import { WORKERS } from './service-jobs.js';

/** For what must come; then for what may be there besides. */
const QUIET_MS = 15_000;
const SURPLUS_QUIET_MS = 500;
const KEYS = 8;

/** A real broker: its own or the shared one. */
export interface BrokerAddress {
  readonly serviceUrl: string;
  readonly admin: PulsarAdmin;
}

export class ServicePlace {
  readonly jobs: string;
  readonly results: string;
  readonly #broker: BrokerAddress;

  private constructor(broker: BrokerAddress) {
    const name = randomUUID();
    this.#broker = broker;
    this.jobs = `persistent://public/default/jobs-${name}`;
    this.results = `persistent://public/default/results-${name}`;
  }

  /** With subscriptions from the start, so that the broker keeps whatever is published. */
  static async prepare(broker: BrokerAddress): Promise<ServicePlace> {
    const place = new ServicePlace(broker);
    for (const [topic, subscription] of [
      [place.jobs, WORKERS],
      [place.results, 'readers'],
    ] as const) {
      await broker.admin.createTopic(topic);
      await broker.admin.createSubscription(topic, subscription);
    }
    return place;
  }

  get serviceUrl(): string {
    return this.#broker.serviceUrl;
  }

  async publish(jobs: readonly Job[], batched = false): Promise<void> {
    const client = new WireClient({ serviceUrl: this.serviceUrl });
    const batching = batched ? { maxMessages: 7, byKey: true } : false;
    const publisher = await client.publisher(this.jobs, { batching });
    const receipts = jobs.map((job, index) => {
      const { id, kind } = job;
      const payload = Buffer.from(JSON.stringify(kind === 'wrong' ? { wrong: id } : job));
      const message = { payload, key: `key-${index % KEYS}`, properties: { id } };
      return publisher.publish(message, publisher.nextSequenceId());
    });
    await Promise.all(receipts);
    await client.close();
  }

  /** Entries that are not acknowledged, retry letters included: those last, as messages move there from the jobs. */
  async backlog(): Promise<number> {
    const own = await this.#backlogOf(this.jobs);
    return own + (await this.#backlogOf(retryTopicName(this.jobs, WORKERS)));
  }

  /** The dead letters: `expected` different ids and whatever is there besides. */
  deadLetters(expected: number): Promise<readonly ReceivedMessage[]> {
    return this.#read(deadLetterTopicName(this.jobs, WORKERS), expected, ({ properties }) => properties['id']);
  }

  follows(expected: number): Promise<readonly ReceivedMessage[]> {
    return this.#read(this.results, expected, ({ properties }) => properties['pulsework-message-id']);
  }

  async #backlogOf(topic: string): Promise<number> {
    try {
      const { subscriptions } = await this.#broker.admin.stats(topic);
      return subscriptions[WORKERS]?.msgBacklog ?? 0;
    } catch (error) {
      if (error instanceof AdminCallError && error.status === 404) return 0; // No letter was ever written.
      throw error;
    }
  }

  async #read(
    topic: string,
    expected: number,
    nameOf: (message: ReceivedMessage) => string | undefined,
  ): Promise<readonly ReceivedMessage[]> {
    const client = new WireClient({ serviceUrl: this.serviceUrl });
    try {
      const subscription = await client.subscribe({ topics: [topic], subscription: `reader-${randomUUID()}` });
      const messages: ReceivedMessage[] = [];
      const names = new Set<string | undefined>();
      for (;;) {
        const quietMs = names.size < expected ? QUIET_MS : SURPLUS_QUIET_MS;
        const [message] = await receive(subscription, 1, quietMs);
        if (message === undefined) return messages;
        messages.push(message);
        names.add(nameOf(message));
      }
    } finally {
      await client.close();
    }
  }
}
