// What is processed in the benchmarks of throughput: the same messages, the same schema, the same handler's work for
// the bare loop and for the runtime, and the same rule of when the time starts and ends.
import { z } from 'zod';
import { topic } from '../../src/index.js';
import { embedded } from '../../src/embedded.js';
import type { Clock, MessageProperties, SubscriptionSpec } from '../../src/index.js';
import type { EmbeddedTransport } from '../../src/embedded.js';
import { Stopwatch } from './stopwatch.js';
import type { Measurement } from './variant.js';

/** A multiple of every number in flight, so that the last group is full. */
export const MESSAGES = 12_800;
/** Nothing waits for input or time once the last handler was called; beyond this a message is lost. */
const MAX_TURNS_AFTER_LAST = 1_000;
export const SUBSCRIPTION = 'billing';
export const TOPIC_NAME = 'persistent://public/default/orders';

const Order = z.object({
  id: z.string(),
  customer: z.string(),
  country: z.string(),
  amountCents: z.number(),
  items: z.array(z.object({ sku: z.string(), quantity: z.number() })),
});

export const orders = topic(TOPIC_NAME, { payload: Order });

/** 190 bytes of JSON. */
export const PAYLOAD = new TextEncoder().encode(
  JSON.stringify({
    id: 'order-000000000001',
    customer: 'customer-4711@mail.example.org',
    country: 'NL',
    amountCents: 12_995,
    items: [
      { sku: 'SKU-100-200-A', quantity: 2 },
      { sku: 'SKU-100-300-B', quantity: 1 },
    ],
  }),
);

export function bareSubscription(prefetch: number): SubscriptionSpec {
  return {
    topics: [TOPIC_NAME],
    subscription: SUBSCRIPTION,
    type: 'shared',
    initialPosition: 'earliest',
    prefetch,
    consumerName: 'bare-consumer',
  };
}

const NO_PROPERTIES = (): MessageProperties => ({});

/** A broker of its own with `count` messages waiting on the subscription. @param propertiesOf of message number n */
export async function backlogOf(
  count: number,
  clock?: Clock,
  propertiesOf: (n: number) => MessageProperties = NO_PROPERTIES,
): Promise<EmbeddedTransport> {
  const transport = embedded({ clock });
  // Brokers keep messages for subscriptions that exist.
  const subscription = await transport.subscribe(bareSubscription(0));
  await subscription.close();
  const publisher = await transport.publisher(TOPIC_NAME);
  for (let n = 0; n < count; n++)
    await publisher.publish({ payload: PAYLOAD, properties: propertiesOf(n) }, publisher.nextSequenceId());
  await publisher.close();
  if (backlog(transport) !== count) throw new Error(`${backlog(transport)} of ${count} messages are waiting`);
  return transport;
}

function backlog({ broker }: EmbeddedTransport): number | undefined {
  return broker.stats(TOPIC_NAME).subscriptions.get(SUBSCRIPTION)?.backlog;
}

/**
 * The work of a handler: counts, and lets handlers end in groups of `inFlight`, so that so many really run together. The
 * time starts with the first call, when everything is open, and ends when the last message has been settled.
 */
export class HandlerWork {
  readonly #inFlight: number;
  #seen = 0;
  readonly #stopwatch = new Stopwatch();
  #waiting = 0;
  #openGate!: () => void;
  #gate!: Promise<void>;
  #allSeen!: () => void;
  readonly #last: Promise<void>;

  constructor(inFlight: number) {
    this.#inFlight = inFlight;
    this.#last = new Promise((resolve) => (this.#allSeen = resolve));
    this.#closeGate();
  }

  /** One call by each handler. A promise where the handler has to wait for others. */
  run(order: z.infer<typeof Order>): Promise<void> | undefined {
    if (order.amountCents !== 12_995) throw new Error('the payload is not what was sent');
    if (this.#seen === 0) this.#stopwatch.restart();
    this.#seen += 1;
    if (this.#seen === MESSAGES) this.#allSeen();
    if (this.#inFlight === 1) return undefined;
    const gate = this.#gate;
    this.#waiting += 1;
    if (this.#waiting === this.#inFlight) {
      this.#openGate();
      this.#closeGate();
    }
    return gate;
  }

  /** What one message took, once nothing of `transport` is unacknowledged. */
  async measured(transport: EmbeddedTransport): Promise<Measurement> {
    await this.#last;
    let left = backlog(transport);
    for (let turn = 0; left !== 0 && turn < MAX_TURNS_AFTER_LAST; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      left = backlog(transport);
    }
    const measurement = this.#stopwatch.perMessage(MESSAGES);
    if (left !== 0 || this.#seen !== MESSAGES) throw new Error(`${this.#seen} handled, ${left} left`);
    return measurement;
  }

  #closeGate(): void {
    this.#waiting = 0;
    this.#gate = new Promise((resolve) => (this.#openGate = resolve));
  }
}
