// A transport on an embedded broker with a FakeClock, and short forms of what the tests ask of it.
import type { EncodedMessage, ReceivedMessage } from '../../../src/core/message.js';
import type { SubscriptionSpec } from '../../../src/core/subscription-spec.js';
import type { EmbeddedBrokerOptions, EmbeddedTransport, SubscriptionStats } from '../../../src/embedded.js';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import type { Publisher, Subscription } from '../../../src/ports/transport.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';

export const TOPIC = 'persistent://public/default/orders';
export const NEVER = new AbortController().signal;

export class TestTransport {
  readonly clock = new FakeClock();
  readonly broker: EmbeddedBroker;
  readonly transport: EmbeddedTransport;
  readonly #publishers = new Map<string, Publisher>();

  constructor(options: Partial<EmbeddedBrokerOptions> = {}) {
    this.broker = new EmbeddedBroker({ clock: this.clock, ...options });
    this.transport = embedded({ broker: this.broker });
  }

  async subscribe(spec: Partial<SubscriptionSpec> = {}): Promise<Subscription> {
    const subscription = await this.transport.subscribe({
      topics: [TOPIC],
      subscription: 's',
      type: 'shared',
      initialPosition: 'earliest',
      prefetch: 10,
      consumerName: 'c',
      ...spec,
    });
    await settlePromises();
    return subscription;
  }

  async publish(texts: readonly string[], more: Partial<EncodedMessage> = {}, topic = TOPIC): Promise<void> {
    const publisher = this.#publishers.get(topic) ?? (await this.transport.publisher(topic));
    this.#publishers.set(topic, publisher);
    for (const text of texts) {
      const payload = new TextEncoder().encode(text);
      await publisher.publish({ payload, properties: {}, ...more }, publisher.nextSequenceId());
    }
    await settlePromises();
  }

  stats(topic = TOPIC): SubscriptionStats {
    const stats = this.broker.stats(topic).subscriptions.get('s');
    if (stats === undefined) throw new Error('there is no subscription');
    return stats;
  }
}

export function text(message: ReceivedMessage | undefined): string {
  if (message === undefined) return 'nothing';
  return new TextDecoder().decode(message.payload ?? undefined) + '*'.repeat(message.redeliveryCount);
}

/** The next message. Fails when there is none now. */
export async function next(subscription: Subscription): Promise<ReceivedMessage> {
  const message = await nextOrNone(subscription);
  if (message === undefined) throw new Error('nothing to receive');
  return message;
}

/** The next message, undefined when there is none now. */
export async function nextOrNone(subscription: Subscription): Promise<ReceivedMessage | undefined> {
  const abort = new AbortController();
  const received = subscription.receive(abort.signal);
  await settlePromises();
  abort.abort();
  return received;
}

/** Everything there is to receive now. */
export async function drain(subscription: Subscription): Promise<ReceivedMessage[]> {
  const all: ReceivedMessage[] = [];
  for (;;) {
    const message = await nextOrNone(subscription);
    if (message === undefined) return all;
    all.push(message);
  }
}
