// The public client on Pulsar's binary protocol, for use without the runtime: connections, lookup, and what was opened
// on them. The transport is a thin face of it.
import { fullTopicName } from '../../core/topic-name.js';
import type { InitialPosition, SubscriptionSpec, SubscriptionType } from '../../core/subscription-spec.js';
import { ConnectionPool } from './connection-pool.js';
import { Lookup } from './lookup.js';
import { repeatPassing } from './repeat-passing.js';
import { PendingBytes } from './pending-message.js';
import { resolvePublisherOptions } from './publisher-options.js';
import type { WirePublisherOptions } from './publisher-options.js';
import { alreadyClosed } from './server-errors.js';
import { checkSubscriptionSpec } from './subscription-checks.js';
import type { WireContext } from './wire-context.js';
import { resolveWireOptions } from './wire-options.js';
import type { WireOptions } from './wire-options.js';
import { WirePublisher } from './wire-publisher.js';
import { WireSubscription } from './wire-subscription.js';

/** What brokers take unless configured otherwise; the true limit is known once a broker was asked. */
const DEFAULT_MAX_MESSAGE_BYTES = 5 * 1024 * 1024;

export interface WireSubscribeOptions {
  /** Short or full names, at least one. */
  readonly topics: readonly string[];
  readonly subscription: string;
  /** @default 'shared' */
  readonly type?: SubscriptionType | undefined;
  /** Only for a subscription that does not exist yet. @default 'earliest' */
  readonly initialPosition?: InitialPosition | undefined;
  /** How many messages may lie in the client beyond those handed on. @default 1000, as Java's client */
  readonly prefetch?: number | undefined;
  /** Unique on the subscription: Failover and Key_Shared choose by it. @default pulsework-<random> */
  readonly consumerName?: string | undefined;
}

export const DEFAULT_WIRE_SUBSCRIPTION = { type: 'shared', initialPosition: 'earliest', prefetch: 1_000 } as const;

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

  /** Opens a consumer per topic or partition. @throws ConfigurationError; TransportError, see `Transport.subscribe`. */
  async subscribe(options: WireSubscribeOptions): Promise<WireSubscription> {
    this.#checkOpen();
    const spec = resolveSubscribeOptions(options, this.#context.options.random);
    checkSubscriptionSpec(spec);
    const topics = spec.topics.map((topic) => fullTopicName(topic));
    await this.#learnLimit();
    const forget = (closed: WireSubscription): void => void this.#open.delete(closed);
    const subscription = await WireSubscription.open(this.#context, { ...spec, topics }, forget);
    return this.#keep(subscription);
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

/** Options set to `undefined` are absent. Unknown ones stay in, so that the check finds them. */
function resolveSubscribeOptions(options: WireSubscribeOptions, random: () => number): SubscriptionSpec {
  return {
    ...options,
    type: options.type ?? DEFAULT_WIRE_SUBSCRIPTION.type,
    initialPosition: options.initialPosition ?? DEFAULT_WIRE_SUBSCRIPTION.initialPosition,
    prefetch: options.prefetch ?? DEFAULT_WIRE_SUBSCRIPTION.prefetch,
    consumerName: options.consumerName ?? `pulsework-${random().toString(36).slice(2, 10)}`,
  };
}
