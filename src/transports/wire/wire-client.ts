// The public client on Pulsar's binary protocol, for use without the runtime: connections, lookup, and what was opened
// on them. The transport is a thin face of it.
import { fullTopicName } from '../../core/topic-name.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { ConnectionPool } from './connection-pool.js';
import { Lookup } from './lookup.js';
import { repeatPassing } from './repeat-passing.js';
import { PendingBytes } from './pending-message.js';
import { resolvePublisherOptions } from './publisher-options.js';
import type { WirePublisherOptions } from './publisher-options.js';
import { alreadyClosed } from './server-errors.js';
import { WireConsumer } from './wire-consumer.js';
import { resolveConsumerOptions, resolveSubscribeOptions } from './wire-consumer-options.js';
import type { WireConsumerOptions, WireSubscribeOptions } from './wire-consumer-options.js';
import { ConsumerRedelivery } from './wire-consumer-redelivery.js';
import type { WireContext } from './wire-context.js';
import { resolveWireOptions } from './wire-options.js';
import type { WireOptions } from './wire-options.js';
import { WirePublisher } from './wire-publisher.js';
import { WireSubscription } from './wire-subscription.js';

/** What brokers take unless configured otherwise; the true limit is known once a broker was asked. */
const DEFAULT_MAX_MESSAGE_BYTES = 5 * 1024 * 1024;

export class WireClient {
  readonly #context: WireContext;
  readonly #open = new Set<{ close(): Promise<void> }>();
  #maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES;
  #closed = false;

  /** Nothing is connected before it is needed. @throws ConfigurationError. */
  constructor(options: WireOptions) {
    const resolved = resolveWireOptions(options);
    const pool = new ConnectionPool(resolved);
    let lastId = 0;
    this.#context = {
      options: resolved,
      pool,
      lookup: new Lookup(pool, resolved),
      pendingBytes: new PendingBytes(resolved.maxPendingBytes),
      nextId: () => ++lastId,
    };
  }

  /** What the broker takes for one message, in bytes; Pulsar's default before a broker was asked. */
  get maxMessageBytes(): number {
    return this.#maxMessageBytes;
  }

  /**
   * Opens a consumer per topic or partition. Resolves once the broker has confirmed all of them.
   * @throws ConfigurationError; TransportError, see `Transport.subscribe`.
   */
  async subscribe(options: WireConsumerOptions): Promise<WireConsumer> {
    this.#checkOpen();
    const { spec, redelivery } = resolveConsumerOptions(options, this.#context.options.random);
    const subscription = await this.#attach(spec);
    const subject = `subscription "${spec.subscription}"`;
    const parts = { subscription, singly: redeliversSingly(spec.type), subject };
    const again = new ConsumerRedelivery(parts, redelivery, this.#context.options);
    return this.#keep(new WireConsumer(subscription, again, (closed) => void this.#open.delete(closed)));
  }

  /** The same without redelivery delays and ack timeout, for an owner that has its own, as the runtime has. */
  async openSubscription(options: WireSubscribeOptions): Promise<WireSubscription> {
    this.#checkOpen();
    return this.#keep(await this.#attach(resolveSubscribeOptions(options, this.#context.options.random)));
  }

  /**
   * Opens a producer per partition. @param topic short or full. @throws ConfigurationError; TransportError, see
   * `Transport.publisher`.
   */
  async publisher(topic: string, options: WirePublisherOptions = {}): Promise<WirePublisher> {
    this.#checkOpen();
    const full = fullTopicName(topic);
    const resolved = resolvePublisherOptions(full, options);
    await this.#learnLimit();
    const publisher = await WirePublisher.open(this.#context, full, {
      options: resolved,
      maxMessageBytes: () => this.#maxMessageBytes,
      forget: (closed) => void this.#open.delete(closed),
    });
    return this.#keep(publisher);
  }

  /** Closes what is still open, then the connections. Calling it twice is allowed. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((opened) => opened.close()));
    await this.#context.pool.close();
  }

  async #attach(spec: SubscriptionSpec): Promise<WireSubscription> {
    await this.#learnLimit();
    return WireSubscription.open(this.#context, spec, (closed) => void this.#open.delete(closed));
  }

  async #learnLimit(): Promise<void> {
    const { options, pool } = this.#context;
    this.#maxMessageBytes = (await repeatPassing(() => pool.toService(), options)).maxMessageBytes;
  }

  /** What was opened while the client closed must not stay. */
  async #keep<T extends { close(): Promise<void> }>(opened: T): Promise<T> {
    this.#open.add(opened);
    if (!this.#closed) return opened;
    await opened.close();
    throw alreadyClosed('the wire client');
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed('the wire client');
  }
}
