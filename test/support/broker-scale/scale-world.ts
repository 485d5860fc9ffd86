// An embedded broker with as many messages as one says, and clients that keep the ids of what they hold.
import type { ConsumerSink, DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import type { EmbeddedBrokerOptions } from '../../../src/broker/embedded-broker.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { seeded } from '../seeded.js';

export const TOPIC = 'persistent://public/default/t';
const SUBSCRIPTION = 's';
const UNLIMITED = Number.MAX_SAFE_INTEGER;
const PAYLOAD = new Uint8Array(10);
const ORIGIN = { producerName: 'p', sequenceId: 0 };

export class ScaleClient implements ConsumerSink {
  readonly ids: MessageId[] = [];
  handle!: ConsumerHandle;
  readonly #topic: string;

  constructor(topic: string) {
    this.#topic = topic;
  }

  deliver({ ledgerId, entryId }: DeliveredEntry): void {
    this.ids.push({ ledgerId, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: this.#topic });
  }

  activeChanged(): void {
    // Nothing depends on it here.
  }

  disconnected(): void {
    // A seek does it.
  }

  /** All that it got, which it then no longer knows of. */
  takeIds(): MessageId[] {
    return this.ids.splice(0);
  }
}

export class ScaleWorld {
  readonly clock = new FakeClock();
  readonly broker: EmbeddedBroker;

  /** Nothing blocks unless asked for, so that everything that can be held is. */
  constructor(options: Partial<EmbeddedBrokerOptions> = {}) {
    const { clock } = this;
    this.broker = new EmbeddedBroker({
      clock,
      maxUnackedPerConsumer: UNLIMITED,
      maxUnackedPerSubscription: UNLIMITED,
      activeConsumerFailoverDelayMs: 0,
      ...options,
    });
    this.broker.createSubscription(TOPIC, SUBSCRIPTION);
  }

  /** @param more of message number i */
  async publish(count: number, more: (i: number) => Partial<EncodedMessage> = () => ({})): Promise<void> {
    for (let i = 0; i < count; i++) this.publishTo(TOPIC, more(i));
    await settlePromises();
  }

  publishTo(topic: string, more: Partial<EncodedMessage> = {}): void {
    void this.broker.publish(topic, { payload: PAYLOAD, properties: {}, ...more }, ORIGIN);
  }

  /** A consumer with permits for everything that comes. */
  async connect(type: SubscriptionType, consumerName = 'c', topic = TOPIC): Promise<ScaleClient> {
    const client = new ScaleClient(topic);
    const request = { topic, subscription: SUBSCRIPTION, type, initialPosition: 'earliest', consumerName } as const;
    client.handle = this.broker.subscribe(request, client);
    client.handle.flow(UNLIMITED);
    await settlePromises();
    return client;
  }

  /** Acknowledges one by one, and lets the broker do what follows. */
  async acknowledge(client: ScaleClient, ids: readonly MessageId[]): Promise<void> {
    for (const id of ids) void client.handle.acknowledge([id]);
    await settlePromises();
  }

  checkBacklog(expected: number): void {
    const backlog = this.broker.stats(TOPIC).subscriptions.get(SUBSCRIPTION)?.backlog;
    if (backlog !== expected) throw new Error(`the backlog is ${backlog}, not ${expected}`);
  }
}

/** The same order in each run. */
export function shuffled<T>(items: readonly T[]): T[] {
  const random = seeded(7);
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}
