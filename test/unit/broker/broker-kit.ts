// A broker on a FakeClock and clients that write down what reaches them.
import type { ConsumerSink, DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import type { ConsumerRequest } from '../../../src/broker/broker-requests.js';
import type { EmbeddedBrokerOptions } from '../../../src/broker/embedded-broker.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import type { SubscriptionStats } from '../../../src/broker/topic-stats.js';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import type { InitialPosition, SubscriptionType } from '../../../src/core/subscription-spec.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';

export const TOPIC = 'persistent://public/default/t';

export function message(text: string, more: Partial<EncodedMessage> = {}): EncodedMessage {
  return { payload: new TextEncoder().encode(text), properties: {}, ...more };
}

export class TestClient implements ConsumerSink {
  /** `text` of each message, with `*` for each redelivery that the broker counted. */
  readonly received: string[] = [];
  readonly ids = new Map<string, MessageId>();
  readonly active: boolean[] = [];
  disconnects = 0;
  handle!: ConsumerHandle;
  readonly #topic: string;

  constructor(topic: string) {
    this.#topic = topic;
  }

  deliver({ entry, ledgerId, entryId, unacked, redeliveryCount }: DeliveredEntry): void {
    for (const [index, { payload }] of entry.messages.entries()) {
      if (unacked !== undefined && !unacked.has(index)) continue;
      const text = new TextDecoder().decode(payload ?? undefined);
      const batchIndex = entry.batchSize === 0 ? -1 : index;
      this.received.push(text + '*'.repeat(redeliveryCount));
      const { batchSize } = entry;
      this.ids.set(text, { ledgerId, entryId, partition: -1, batchIndex, batchSize, topic: this.#topic });
    }
  }

  activeChanged(active: boolean): void {
    this.active.push(active);
  }

  disconnected(): void {
    this.disconnects += 1;
  }

  id(text: string): MessageId {
    const id = this.ids.get(text);
    if (id === undefined) throw new Error(`${text} was not received`);
    return id;
  }

  async ack(...texts: string[]): Promise<void> {
    await this.handle.acknowledge(texts.map((text) => this.id(text)));
    await settlePromises();
  }

  async nack(...texts: string[]): Promise<void> {
    this.handle.redeliver(texts.map((text) => this.id(text)));
    await settlePromises();
  }

  /** Says that these failed, and gives others back behind them (PIP-493). */
  async fail(nacked: readonly string[], returned: readonly string[] = []): Promise<void> {
    const ids = (texts: readonly string[]): MessageId[] => texts.map((text) => this.id(text));
    this.handle.negativeAcknowledgeOrdered(ids(nacked), ids(returned));
    await settlePromises();
  }

  async flow(permits: number): Promise<void> {
    this.handle.flow(permits);
    await settlePromises();
  }

  async close(): Promise<void> {
    this.handle.close();
    await settlePromises();
  }

  /** What was received since the last call. */
  take(): string {
    return this.received.splice(0).join(' ');
  }
}

export interface ConnectOptions extends Pick<ConsumerRequest, 'priority' | 'stickyRanges' | 'allowOutOfOrder'> {
  /** @default 1000 */
  readonly permits?: number;
  /** @default earliest */
  readonly from?: InitialPosition;
  readonly topic?: string;
}

export class TestBroker {
  readonly clock = new FakeClock();
  readonly broker: EmbeddedBroker;

  constructor(options: Partial<EmbeddedBrokerOptions> = {}) {
    this.broker = new EmbeddedBroker({ clock: this.clock, ...options });
  }

  /** Messages with these texts; `text@key` has a key. */
  async publish(...texts: string[]): Promise<MessageId[]> {
    const ids = texts.map((text) => this.broker.publish(TOPIC, keyed(text)));
    await settlePromises();
    return Promise.all(ids);
  }

  async batch(...texts: string[]): Promise<readonly MessageId[]> {
    const ids = await this.broker.publishBatch(TOPIC, texts.map(keyed));
    await settlePromises();
    return ids;
  }

  async connect(type: SubscriptionType, name = 'c1', more: ConnectOptions = {}): Promise<TestClient> {
    const topic = more.topic ?? TOPIC;
    const client = new TestClient(topic);
    const initialPosition = more.from ?? 'earliest';
    const { priority, stickyRanges, allowOutOfOrder } = more;
    const request = { topic, subscription: 's', type, initialPosition, consumerName: name, priority };
    client.handle = this.broker.subscribe({ ...request, stickyRanges, allowOutOfOrder }, client);
    const permits = more.permits ?? 1000;
    if (permits > 0) client.handle.flow(permits);
    await settlePromises();
    return client;
  }

  stats(topic = TOPIC): SubscriptionStats {
    const stats = this.broker.stats(topic).subscriptions.get('s');
    if (stats === undefined) throw new Error('there is no subscription');
    return stats;
  }
}

function keyed(text: string): EncodedMessage {
  const [, key] = text.split('@');
  return message(text, { key });
}
