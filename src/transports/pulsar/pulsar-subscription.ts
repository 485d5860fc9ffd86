// The Subscription port over the official client: one consumer per topic or partition, so that each can be asked whether it
// is connected, and messages are asked for only while somebody waits for one.
import { toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { checkMessageIdList } from '../../core/message-id.js';
import { ReceiveQueue, signalProblem } from '../../core/receive-queue.js';
import { StateListener } from '../../core/state-listener.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { groupedByPart, notOfSubscription, partOf, seeksMessage } from '../../core/topic-parts.js';
import type { Timer } from '../../ports/clock.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import { ConsumerLink } from './consumer-link.js';
import type { LinkOwner } from './consumer-link.js';
import type { Official } from './official-connection.js';
import { alreadyClosed, notSupported, transportError } from './official-errors.js';
import type { ResolvedPulsarOptions } from './pulsar-options.js';
import { MAX_INT32 } from './pulsar-options.js';

/** How often connections are looked at. The client waits about 100 ms before it connects again, so no loss is missed. */
export const LOOK_INTERVAL_MS = 25;

export class PulsarSubscription implements Subscription, LinkOwner {
  readonly #spec: SubscriptionSpec;
  readonly #options: ResolvedPulsarOptions;
  readonly #forget: (closed: PulsarSubscription) => void;
  readonly #queue = new ReceiveQueue();
  /** By full topic name, partitions one by one. */
  readonly #links = new Map<string, ConsumerLink>();
  readonly #listener = new StateListener<SubscriptionState>();
  /** Fails the `receive` that waits. */
  #reject: (error: Error) => void = () => undefined;
  #timer: Timer | undefined;
  #paused = false;
  #closing: Promise<void> | undefined;

  private constructor(
    spec: SubscriptionSpec,
    options: ResolvedPulsarOptions,
    forget: (closed: PulsarSubscription) => void,
  ) {
    this.#spec = spec;
    this.#options = options;
    this.#forget = forget;
  }

  /** All topics or none. @param forget is called once at close. @throws TransportError */
  static async open(
    official: Official,
    spec: SubscriptionSpec,
    options: ResolvedPulsarOptions,
    forget: (closed: PulsarSubscription) => void,
  ): Promise<PulsarSubscription> {
    if (spec.prefetch < 1) {
      const text = `subscription "${spec.subscription}" has a prefetch of 0: with it "pulsar-client" never delivers the rest of a producer batch; use 1 or more`;
      throw notSupported(text);
    }
    const topics = [...new Set((await Promise.all(spec.topics.map((topic) => partitionsOf(official, topic)))).flat())];
    const subscription = new PulsarSubscription(spec, options, forget);
    await subscription.#openAll(official, topics);
    return subscription;
  }

  async receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const problem = signalProblem(signal);
    if (problem !== undefined) throw problem;
    if (this.#closed || signal.aborted) return undefined;
    const message = this.#queue.take();
    if (message !== undefined) return message;
    const next = this.#queue.wait(signal);
    this.#ask();
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      next.then(resolve, reject);
    });
  }

  async acknowledge(ids: readonly MessageId[]): Promise<void> {
    checkMessageIdList(ids);
    const taken = ids.map((id) => ({ id, link: this.#linkOf(id) }));
    // All are checked first: one that fails must leave the others as they are.
    for (const { id, link } of taken) link.checkId(id);
    for (const { link } of taken) link.checkConnected();
    await Promise.all(taken.map(({ id, link }) => link.acknowledge(id)));
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    if (redeliversSingly(this.#spec.type)) {
      const text = `subscription "${this.#spec.subscription}" is ${this.#spec.type}: cumulative acknowledgement needs exclusive or failover`;
      throw notSupported(text);
    }
    const link = this.#linkOf(id);
    link.checkId(id);
    link.checkConnected();
    await link.acknowledgeCumulative(id);
  }

  async redeliver(ids: readonly MessageId[]): Promise<void> {
    const byLink = groupedByPart(ids, (id) => this.#linkOf(id));
    this.#checkOpen();
    if (ids.length === 0) return;
    const singly = redeliversSingly(this.#spec.type);
    const links = singly ? [...byLink.keys()] : [...this.#links.values()];
    // All or none: what was asked for before the topic that fails would be asked for, and counted, twice.
    for (const link of links) link.checkConnected();
    const requests = links.map((link) => (singly ? link.redeliver(byLink.get(link) ?? []) : link.redeliverAll()));
    await Promise.all(requests);
  }

  /** Messages are asked for one by one, so nothing more is: what lies in the client stays there. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    if (this.#queue.hasWaiter) this.#ask();
  }

  async seek(to: SeekTarget): Promise<void> {
    const links = this.#linksToSeek(to);
    for (const link of links) link.checkConnected();
    await Promise.all(links.map((link) => link.seek(to)));
  }

  onState(report: (state: SubscriptionState) => void): void {
    const states = [...this.#links.values()].map(({ state }) => state);
    this.#listener.listen(report, states);
  }

  /** Again: waits for the same end. The client must not be closed while a consumer closes. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get #closed(): boolean {
    return this.#closing !== undefined;
  }

  async #close(): Promise<void> {
    this.#timer?.cancel();
    this.#queue.remove(() => true);
    this.#queue.answer(undefined);
    const closing = await Promise.allSettled([...this.#links.values()].map((link) => link.close()));
    this.#forget(this);
    const failed = closing.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw toError(failed.reason);
  }

  arrived(message: ReceivedMessage): void {
    this.#queue.push(message);
    if (this.#queue.hasWaiter) this.#queue.answer(this.#queue.take());
  }

  dropQueued(topic: string): void {
    this.#queue.remove((message) => message.id.topic === topic);
    // There may be no `receive()` under way any more: the message that ended it was dropped.
    if (this.#queue.hasWaiter) this.#ask();
  }

  stateChanged(state: SubscriptionState): void {
    this.#listener.tell(state);
  }

  failed(error: Error): void {
    this.#reject(error);
    this.#queue.answer(undefined);
  }

  async #openAll(official: Official, topics: readonly string[]): Promise<void> {
    const share = Math.floor(this.#spec.prefetch / topics.length);
    const queueSize = Math.min(Math.max(1, share), MAX_INT32);
    const parts = { official, owner: this, options: this.#options };
    const opened = await Promise.allSettled(
      topics.map((topic) => ConsumerLink.open(topic, this.#spec, queueSize, parts)),
    );
    for (const result of opened) if (result.status === 'fulfilled') this.#links.set(result.value.topic, result.value);
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed !== undefined) {
      await this.close();
      throw toError(failed.reason);
    }
    this.#lookAgain();
  }

  #ask(): void {
    if (this.#paused) return;
    for (const link of this.#links.values()) link.ask();
  }

  #lookAgain(): void {
    this.#timer = this.#options.clock.setTimer(LOOK_INTERVAL_MS, () => {
      for (const link of this.#links.values()) link.look();
      if (!this.#closed) this.#lookAgain();
    });
  }

  #linkOf(id: MessageId): ConsumerLink {
    this.#checkOpen();
    const link = partOf(this.#links, id);
    if (link === undefined) throw notOfSubscription(this.#spec.subscription, id);
    return link;
  }

  #linksToSeek(to: SeekTarget): readonly ConsumerLink[] {
    this.#checkOpen();
    return seeksMessage(to) ? [this.#linkOf(to)] : [...this.#links.values()];
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed(`subscription "${this.#spec.subscription}"`);
  }
}

/** The topics to attach to: the topic itself, or each of its partitions. */
async function partitionsOf({ client }: Official, topic: string): Promise<readonly string[]> {
  if (partitionOf(topic) >= 0) return [topic];
  try {
    const names = await client.getPartitionsForTopic(topic);
    return names.length === 0 ? [topic] : names;
  } catch (error) {
    throw transportError(`looking up the partitions of "${topic}"`, error);
  }
}
