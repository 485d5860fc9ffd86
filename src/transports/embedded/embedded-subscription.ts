// A subscription on the embedded broker, over one or several topics, each possibly partitioned: one receive queue, and
// permits so that no more than `prefetch` messages lie here beyond those handed on.
import { PulseworkError, TransportError, describeValue } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { ReceiveQueue } from '../../core/receive-queue.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { groupedByPart, notOfSubscription, partOf, seeksMessage } from '../../core/topic-parts.js';
import type { Timer } from '../../ports/clock.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { TopicLink } from './topic-link.js';

/** Between two attempts to connect again after the broker closed the consumers (seek) and someone else came first. */
const RECONNECT_DELAY_MS = 1_000;

export class EmbeddedSubscription implements Subscription {
  readonly #broker: EmbeddedBroker;
  readonly #spec: SubscriptionSpec;
  readonly #forget: () => void;
  readonly #queue = new ReceiveQueue();
  /** By full topic name, partitions one by one; empty while not connected. */
  #links = new Map<string, TopicLink>();
  /** Messages that may lie here per topic; at least 1 unless `prefetch` is 0. */
  #share = 0;
  #connection = 0;
  /** By full topic name, partitions one by one. */
  readonly #states = new Map<string, SubscriptionState['state']>();
  #report: (state: SubscriptionState) => void = () => undefined;
  #reconnect: Timer | undefined;
  #paused = false;
  #closed = false;

  /** Connects at once. @throws TransportError CONSUMER_BUSY, TOPIC_NOT_FOUND. @param forget is called once at close. */
  constructor(broker: EmbeddedBroker, spec: SubscriptionSpec, forget: () => void) {
    this.#broker = broker;
    this.#spec = spec;
    this.#forget = forget;
    this.#connect();
  }

  async receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    if (this.#closed || signal.aborted) return undefined;
    const message = this.#queue.take();
    if (message !== undefined) {
      this.#handedOn(message);
      return message;
    }
    const next = this.#queue.wait(signal);
    this.#grantAll();
    return next;
  }

  async acknowledge(ids: readonly MessageId[]): Promise<void> {
    // Sorted by topic first: a foreign id fails the call before anything is acknowledged (G-04).
    for (const [link, own] of this.#byLink(ids)) {
      const stored = link.handle.acknowledge(own);
      if (stored !== undefined) await stored;
    }
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    const stored = this.#linkOf(id).handle.acknowledgeCumulative(id);
    if (stored !== undefined) await stored;
  }

  async redeliver(ids: readonly MessageId[]): Promise<void> {
    const byLink = this.#byLink(ids);
    if (ids.length === 0) return;
    if (redeliversSingly(this.#spec.type)) {
      for (const [link, own] of byLink) this.#redeliverSingly(link, own);
    } else {
      this.#dropQueued(() => true);
      for (const link of this.#links.values()) link.handle.redeliverAll();
    }
    this.#grantAll();
  }

  backlog(): number {
    const stats = [...this.#links.keys()].map((topic) =>
      this.#broker.stats(topic).subscriptions.get(this.#spec.subscription),
    );
    return stats.reduce((sum, subscription) => sum + (subscription?.backlog ?? 0), 0);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#grantAll();
  }

  async seek(to: SeekTarget): Promise<void> {
    const links = this.#linksToSeek(to);
    for (const link of links) link.handle.seek(to);
    this.#connectAgain();
  }

  onState(report: (state: SubscriptionState) => void): void {
    if (typeof (report as unknown) !== 'function') {
      throw new PulseworkError('CONFIGURATION_INVALID', `onState needs a function, got ${describeValue(report)}`);
    }
    this.#report = report;
    for (const [topic, state] of this.#states) report({ topic, connection: this.#connection, state });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#reconnect?.cancel();
    this.#disconnect();
    this.#queue.answer(undefined);
    this.#forget();
  }

  /** All topics or none. */
  #connect(): void {
    const topics = [...new Set(this.#spec.topics.flatMap((topic) => this.#broker.partitionsOf(topic)))];
    const { prefetch, subscription, type, initialPosition, consumerName } = this.#spec;
    const links = new Map<string, TopicLink>();
    const owner = {
      arrived: (link: TopicLink, messages: readonly ReceivedMessage[]) => this.#arrived(link, messages),
      activeChanged: (link: TopicLink) => this.#changeState(link.topic, link.active === true ? 'active' : 'standby'),
      disconnected: (link: TopicLink) => {
        if (this.#links.get(link.topic) === link) this.#connectAgain();
      },
    };
    try {
      for (const topic of topics) {
        const link = new TopicLink(topic, this.#connection + 1, owner);
        link.connected(this.#broker.subscribe({ topic, subscription, type, initialPosition, consumerName }, link));
        links.set(topic, link);
      }
    } catch (error) {
      for (const link of links.values()) link.handle.close();
      throw error;
    }
    this.#links = links;
    this.#share = prefetch === 0 ? 0 : Math.max(1, Math.floor(prefetch / links.size));
    this.#connection += 1;
    for (const topic of topics) this.#changeState(topic, 'connected');
    this.#grantAll();
  }

  #disconnect(): void {
    for (const link of this.#links.values()) link.handle.close();
    this.#links = new Map();
    this.#queue.remove(() => true);
  }

  /** All topics together: one connection number must say of every message whether it is still held here. */
  #connectAgain(): void {
    if (this.#closed) return;
    this.#disconnect();
    for (const topic of this.#states.keys()) this.#changeState(topic, 'lost');
    try {
      this.#connect();
    } catch {
      // Someone else came first; the state stays `lost` and says so.
      this.#reconnect = this.#broker.clock.setTimer(RECONNECT_DELAY_MS, () => this.#connectAgain());
    }
  }

  #arrived(link: TopicLink, messages: readonly ReceivedMessage[]): void {
    if (this.#links.get(link.topic) !== link) return;
    for (const message of messages) this.#queue.push(message);
    if (!this.#queue.hasWaiter) return;
    const first = this.#queue.take();
    if (first === undefined) return;
    this.#queue.answer(first);
    this.#handedOn(first);
  }

  #handedOn(message: ReceivedMessage): void {
    const link = this.#links.get(message.id.topic);
    link?.handedOn(1);
    if (link !== undefined) this.#grant(link);
  }

  /** With `prefetch` 0 one message per topic is asked for while a `receive` waits, and none otherwise. */
  #grant(link: TopicLink): void {
    if (this.#paused) return;
    const target = this.#share === 0 && this.#queue.hasWaiter ? 1 : this.#share;
    if (target > 0) link.grantUpTo(target);
  }

  #grantAll(): void {
    for (const link of this.#links.values()) this.#grant(link);
  }

  /** Copies that lie here would be handed on besides the redelivered ones: drop them first (N-33). */
  #redeliverSingly(link: TopicLink, ids: readonly MessageId[]): void {
    const entries = new Set(ids.map(entryKey));
    this.#dropQueued((message) => message.id.topic === link.topic && entries.has(entryKey(message.id)));
    link.handle.redeliver(ids);
  }

  #dropQueued(drop: (message: ReceivedMessage) => boolean): void {
    if (this.#queue.length === 0) return;
    for (const message of this.#queue.remove(drop)) this.#links.get(message.id.topic)?.handedOn(1);
  }

  #byLink(ids: readonly MessageId[]): Map<TopicLink, MessageId[]> {
    const byLink = groupedByPart(ids, (id) => this.#linkOf(id));
    if (ids.length === 0) this.#checkConnected();
    return byLink;
  }

  #linkOf(id: MessageId): TopicLink {
    this.#checkConnected();
    const link = partOf(this.#links, id);
    if (link === undefined) throw notOfSubscription(this.#spec.subscription, id);
    return link;
  }

  #linksToSeek(to: SeekTarget): readonly TopicLink[] {
    this.#checkConnected();
    return seeksMessage(to) ? [this.#linkOf(to)] : [...this.#links.values()];
  }

  #checkConnected(): void {
    const { subscription } = this.#spec;
    if (this.#closed) {
      throw new TransportError('ALREADY_CLOSED', `subscription "${subscription}" is closed`, { retriable: false });
    }
    if (this.#links.size === 0) {
      const text = `subscription "${subscription}" lost its connection and waits to connect again`;
      throw new TransportError('CONNECTION_LOST', text, { retriable: true });
    }
  }

  #changeState(topic: string, state: SubscriptionState['state']): void {
    if (this.#states.get(topic) === state && state !== 'connected') return;
    this.#states.set(topic, state);
    try {
      this.#report({ topic, connection: this.#connection, state });
    } catch (error) {
      // Not the broker's fault: it surfaces as an uncaught error, and the broker goes on.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

function entryKey(id: MessageId): string {
  return `${id.ledgerId}:${id.entryId}`;
}
