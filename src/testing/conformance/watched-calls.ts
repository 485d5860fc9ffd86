// A transport whose publishes and acknowledgements are written down in the order in which they were made, whose publishes
// to one topic can fail for a while, and whose acknowledgements can get lost.
import { TransportError } from '../../core/errors.js';
import type { Publisher, Subscription, Transport } from '../../ports/transport.js';
import { subscriptionWith } from '../subscription-with.js';

export class WatchedCalls {
  readonly transport: Transport;
  /** `published` when a receipt came from the watched topic, `failed` when it was made to fail, `acknowledged`. */
  readonly calls: ('published' | 'failed' | 'acknowledged')[] = [];
  /** Publishers that were opened on the watched topic. */
  publishers = 0;
  /** While true, publishes to the watched topic fail for a passing reason. */
  failing = false;
  /** While true, acknowledgements get lost on their way, as those of a client that waits for no receipt may. */
  losing = false;
  readonly #topic: string;

  /** @param topic full name of the topic to which publishes are watched. */
  constructor(inner: Transport, topic: string) {
    this.#topic = topic;
    this.transport = {
      name: inner.name,
      capabilities: inner.capabilities,
      clock: inner.clock,
      maxMessageBytes: inner.maxMessageBytes,
      subscribe: async (spec) => this.#subscription(await inner.subscribe(spec)),
      publisher: async (name, options) => this.#publisher(await inner.publisher(name, options)),
      close: () => inner.close(),
    };
  }

  #subscription(inner: Subscription): Subscription {
    return subscriptionWith(inner, {
      acknowledge: async (ids) => {
        this.calls.push('acknowledged');
        if (!this.losing) await inner.acknowledge(ids);
      },
    });
  }

  #publisher(inner: Publisher): Publisher {
    if (inner.topic !== this.#topic) return inner;
    this.publishers += 1;
    return {
      topic: inner.topic,
      nextSequenceId: () => inner.nextSequenceId(),
      publish: async (message, sequenceId) => {
        if (this.failing) {
          this.calls.push('failed');
          throw new TransportError('CONNECTION_LOST', 'the publish was made to fail', { retriable: true });
        }
        const receipt = await inner.publish(message, sequenceId);
        this.calls.push('published');
        return receipt;
      },
      close: () => inner.close(),
    };
  }
}
