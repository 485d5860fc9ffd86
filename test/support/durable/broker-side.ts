// One broker of a program that two brokers run: one that lives on, and one that is another process after each restart. Messages
// are named by their texts, for ids differ.
import type { MessageId } from '../../../src/core/message-id.js';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import type { DurableBrokerStore } from '../../../src/ports/broker-store.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { memoryMetadataStore } from '../../../src/testing.js';

export const PRODUCER = 'shop';
const fullName = (topic: string): string => `persistent://public/default/${topic}`;

/** What a consumer is sent of one message. */
export interface SeenMessage extends EncodedMessage {
  readonly text: string;
  readonly publishTimeMs: number;
  readonly producerName: string;
  readonly id: MessageId;
}

/** A durable store of one process that never ends. */
export function endlessStore(): DurableBrokerStore {
  return {
    name: 'memory',
    metadata: memoryMetadataStore(),
    open: () => Promise.resolve({ lastLedgerId: 0, partitions: new Map(), topics: [] }),
    append: () => undefined,
    acknowledge: () => undefined,
    changed: () => undefined,
    written: () => undefined,
    close: () => Promise.resolve(),
  };
}

export class BrokerSide {
  readonly broker: EmbeddedBroker;

  private constructor(broker: EmbeddedBroker) {
    this.broker = broker;
  }

  static async open(clock: FakeClock, store: DurableBrokerStore): Promise<BrokerSide> {
    const options = { clock, store, deduplication: true, maxLedgerEntries: 3 };
    const broker = new EmbeddedBroker(options);
    await broker.open();
    return new BrokerSide(broker);
  }

  /** What the publish gives: a place, `repeated`, or the code of the error. */
  async publish(topic: string, messages: readonly EncodedMessage[], sequenceId: number): Promise<string> {
    const origin = { producerName: PRODUCER, sequenceId };
    const [first] = messages;
    if (first === undefined) throw new Error('nothing to publish');
    try {
      const published =
        messages.length === 1
          ? [await this.broker.publish(topic, first, origin)]
          : await this.broker.publishBatch(topic, messages, origin);
      return published[0]?.ledgerId === -1 ? 'repeated' : 'stored';
    } catch (error) {
      return String((error as { readonly code?: unknown }).code);
    }
  }

  /** All that the subscription has not acknowledged, in order; undefined when there is none of this name. */
  async unacked(topic: string, subscription: string): Promise<readonly SeenMessage[] | undefined> {
    if (!this.has(topic, subscription)) return undefined;
    return this.#withConsumer(topic, subscription, (_, seen) => Promise.resolve(seen));
  }

  has(topic: string, subscription: string): boolean {
    return this.broker.hasTopic(topic) && this.broker.stats(topic).subscriptions.has(subscription);
  }

  /** Of those that are not acknowledged, the n-th, as often as there are any. @param whole with the rest of its batch */
  acknowledge(topic: string, subscription: string, n: number, whole: boolean): Promise<void> {
    return this.#onMessage(topic, subscription, n, async (handle, { id }) => {
      await handle.acknowledge([whole ? { ...id, batchIndex: -1 } : id]);
    });
  }

  acknowledgeUpTo(topic: string, subscription: string, n: number): Promise<void> {
    return this.#onMessage(topic, subscription, n, async (handle, { id }) => handle.acknowledgeCumulative(id));
  }

  seek(topic: string, subscription: string, n: number): Promise<void> {
    return this.#onMessage(topic, subscription, n, async (handle, { id }) => {
      handle.seek(id);
      await this.broker.written();
    });
  }

  async rewind(topic: string, subscription: string, to: 'earliest' | 'latest'): Promise<void> {
    if (!this.has(topic, subscription)) return;
    await this.#withConsumer(topic, subscription, async (handle) => {
      handle.seek(to);
      await this.broker.written();
    });
  }

  /** All there is to know, for a comparison. */
  async picture(topics: readonly string[], subscriptions: readonly string[]): Promise<unknown> {
    const known = topics.filter((topic) => this.broker.hasTopic(topic));
    const all = known.map(async (topic) => {
      const { terminated, entries } = this.broker.stats(topic);
      const unacked = await Promise.all(subscriptions.map((subscription) => this.unacked(topic, subscription)));
      const seen = unacked.map((messages) =>
        messages?.map(({ id, ...message }) => ({ ...message, index: id.batchIndex })),
      );
      return { topic, terminated, entries, seen, partitions: this.broker.partitionCount(topic) };
    });
    return Promise.all(all);
  }

  async #onMessage(
    topic: string,
    subscription: string,
    n: number,
    act: (handle: ConsumerHandle, message: SeenMessage) => Promise<void>,
  ): Promise<void> {
    if (!this.has(topic, subscription)) return;
    await this.#withConsumer(topic, subscription, async (handle, seen) => {
      const message = seen[n % Math.max(1, seen.length)];
      if (message !== undefined) await act(handle, message);
    });
  }

  async #withConsumer<T>(
    topic: string,
    subscription: string,
    act: (handle: ConsumerHandle, seen: readonly SeenMessage[]) => Promise<T>,
  ): Promise<T> {
    const seen: SeenMessage[] = [];
    const handle = this.broker.subscribe(
      { topic, subscription, type: 'exclusive', initialPosition: 'earliest', consumerName: 'c' },
      {
        deliver: (delivered) => void seen.push(...messagesOf(fullName(topic), delivered)),
        activeChanged: () => undefined,
        disconnected: () => undefined,
      },
    );
    handle.flow(100_000);
    await settlePromises();
    try {
      return await act(handle, seen);
    } finally {
      handle.close();
      await settlePromises();
    }
  }
}

function messagesOf(topic: string, { entry, unacked, ledgerId, entryId }: DeliveredEntry): SeenMessage[] {
  const { batchSize, publishTimeMs, producerName } = entry;
  return entry.messages.flatMap((message, index) => {
    if (unacked !== undefined && !unacked.has(index)) return [];
    const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message;
    const batchIndex = batchSize === 0 ? -1 : index;
    const id = { ledgerId, entryId, partition: -1, batchIndex, batchSize, topic };
    const text = properties['text'] ?? '';
    const copied = { key: copyOf(key), orderingKey: copyOf(orderingKey), payload: copyOf(payload) };
    return [
      { ...copied, text, properties: { ...properties }, eventTimeMs, deliverAtMs, publishTimeMs, producerName, id },
    ];
  });
}

/** Plain arrays: a part of a block and an array of its own are to be equal. */
function copyOf<T>(value: T): T {
  return value instanceof Uint8Array ? (Uint8Array.from(value) as T) : value;
}
