// Clients of the wire for fault tests: closed after each test, and everything that they send and receive is counted.
import type { MessageId } from '../../src/core/message-id.js';
import { WireClient } from '../../src/wire.js';
import type { WireOptions, WirePublisher, WirePublisherOptions, WireSubscribeOptions } from '../../src/wire.js';
import { closedAfterTest } from './closed-after-test.js';
import { CountingConsumer } from './counting-consumer.js';

/** A client that the test's end closes. */
export function openClient(serviceUrl: string, options: Partial<WireOptions> = {}): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl, reconnectMinMs: 10, reconnectMaxMs: 500, ...options }));
}

/** Receives and acknowledges all, on subscription `s`. */
export async function consume(
  serviceUrl: string,
  topic: string,
  spec: Partial<WireSubscribeOptions> = {},
  options: Partial<WireOptions> = {},
): Promise<CountingConsumer> {
  const subscription = await openClient(serviceUrl, options).subscribe({ topics: [topic], subscription: 's', ...spec });
  return closedAfterTest(new CountingConsumer(subscription));
}

/** Publishes texts, a few at a time without a receipt, and waits however long receipts take. */
export class CountingPublisher {
  readonly #publisher: WirePublisher;
  #confirmed = 0;

  private constructor(publisher: WirePublisher) {
    this.#publisher = publisher;
  }

  static async open(
    serviceUrl: string,
    topic: string,
    spec: WirePublisherOptions = {},
    options: Partial<WireOptions> = {},
  ): Promise<CountingPublisher> {
    const client = openClient(serviceUrl, options);
    return new CountingPublisher(await client.publisher(topic, { sendTimeoutMs: Infinity, ...spec }));
  }

  /** How many receipts came. */
  get confirmed(): number {
    return this.#confirmed;
  }

  /** Resolves with the receipts, in the order of `list`. @throws when one of them fails. */
  async publishAll(list: readonly string[], window = 50): Promise<readonly MessageId[]> {
    const receipts: Promise<MessageId>[] = [];
    for (const text of list) {
      const message = { payload: Buffer.from(text), properties: {} };
      const receipt = this.#publisher.publish(message, this.#publisher.nextSequenceId());
      receipts.push(receipt.finally(() => (this.#confirmed += 1)));
      if (receipts.length % window === 0) await receipt;
    }
    return Promise.all(receipts);
  }
}

export const texts = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `message ${from + index}`);
export const asMessages = (list: readonly string[]): readonly { readonly value: string }[] =>
  list.map((value) => ({ value }));
