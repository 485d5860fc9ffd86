// The Subscription port over the wire: one consumer per topic or partition, one receive queue for all of them, and
// permits so that no more than `prefetch` messages lie here beyond those handed on.
import { PulseworkError, TransportError, describeValue, toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { checkMessageId } from '../../core/message-id.js';
import { ReceiveQueue } from '../../core/receive-queue.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import { MAX_BATCH_SIZE } from './ack-set.js';
import type { SeekTarget } from './seek-position.js';
import { alreadyClosed } from './server-errors.js';
import { TopicConsumer } from './topic-consumer.js';
import type { WireContext } from './wire-context.js';
import { partitionsOf } from './wire-publisher.js';

export class WireSubscription implements Subscription {
  readonly #spec: SubscriptionSpec;
  readonly #forget: (closed: WireSubscription) => void;
  readonly #queue = new ReceiveQueue();
  /** By full topic name, partitions one by one. */
  readonly #consumers: ReadonlyMap<string, TopicConsumer>;
  /** Messages that may lie here per topic; at least 1 unless `prefetch` is 0. */
  readonly #share: number;
  #report: (state: SubscriptionState) => void = () => undefined;
  #paused = false;
  #closed = false;

  private constructor(
    context: WireContext,
    spec: SubscriptionSpec,
    topics: readonly string[],
    forget: (closed: WireSubscription) => void,
  ) {
    this.#spec = spec;
    this.#forget = forget;
    this.#share = spec.prefetch === 0 ? 0 : Math.max(1, Math.floor(spec.prefetch / topics.length));
    const owner = {
      arrived: (_consumer: TopicConsumer, messages: readonly ReceivedMessage[]) => this.#arrived(messages),
      dropQueued: ({ topic }: TopicConsumer, drop: (message: ReceivedMessage) => boolean) =>
        this.#queue.remove((message) => message.id.topic === topic && drop(message)).length,
      stateChanged: (consumer: TopicConsumer) => this.#stateChanged(consumer),
    };
    this.#consumers = new Map(topics.map((topic) => [topic, new TopicConsumer(context, topic, spec, owner)]));
  }

  /** All topics or none. @param forget is called once at close. @throws TransportError */
  static async open(
    context: WireContext,
    spec: SubscriptionSpec,
    forget: (closed: WireSubscription) => void,
  ): Promise<WireSubscription> {
    const topics = (await Promise.all(spec.topics.map((topic) => partitionsOf(context, topic)))).flat();
    const subscription = new WireSubscription(context, spec, [...new Set(topics)], forget);
    const opened = await Promise.allSettled([...subscription.#consumers.values()].map((consumer) => consumer.open()));
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed !== undefined) {
      await subscription.close();
      throw failed.reason as Error;
    }
    subscription.#grantAll();
    return subscription;
  }

  receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    if (this.#closed || signal.aborted) return Promise.resolve(undefined);
    const message = this.#queue.take();
    if (message === undefined) return this.#next(signal);
    this.#handedOn(message);
    return Promise.resolve(message);
  }

  acknowledge(ids: readonly MessageId[]): Promise<void> {
    try {
      this.#checkOpen();
      // All are checked first: a foreign id fails the call before anything is acknowledged (G-04).
      const taken = ids.map((id) => ({ id, consumer: this.#consumerThatTakes(id) }));
      const answers = taken.map(({ id, consumer }) => consumer.acknowledge(id));
      // Most calls have one id, and ids of one turn share their answer.
      const [first] = answers;
      if (first !== undefined && answers.every((answer) => answer === first)) return first;
      return Promise.all(answers).then(() => undefined);
    } catch (error) {
      return Promise.reject(toError(error));
    }
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    this.checkCumulative(id);
    await this.#consumerOf(id).acknowledgeCumulative(id);
  }

  async redeliver(ids: readonly MessageId[]): Promise<void> {
    const byConsumer = this.#byConsumer(ids);
    if (ids.length === 0) return;
    if (!redeliversSingly(this.#spec.type)) {
      this.#redeliverAll();
      return;
    }
    // All or none: what was asked for before the topic that fails would be asked for, and counted, twice.
    for (const consumer of byConsumer.keys()) consumer.checkSettles();
    for (const [consumer, own] of byConsumer) consumer.redeliver(own);
  }

  /** @throws PulseworkError MESSAGE_ID_INVALID when one of `ids` cannot be acknowledged here; TransportError ALREADY_CLOSED. */
  checkIds(ids: readonly MessageId[]): void {
    for (const id of ids) this.#consumerThatTakes(id);
  }

  /** The same for a cumulative acknowledgement. @throws TransportError also NOT_SUPPORTED on Shared and Key_Shared. */
  checkCumulative(id: MessageId): void {
    if (redeliversSingly(this.#spec.type)) {
      const text = `subscription "${this.#spec.subscription}" is ${this.#spec.type}: cumulative acknowledgement needs exclusive or failover`;
      throw new TransportError('NOT_SUPPORTED', text, { retriable: false });
    }
    this.checkIds([id]);
  }

  /** @throws PulseworkError MESSAGE_ID_INVALID when `id` is not of this subscription; TransportError ALREADY_CLOSED. */
  checkTopicOf(id: MessageId): void {
    this.#consumerOf(id);
  }

  pause(): void {
    this.#paused = true;
    for (const consumer of this.#consumers.values()) consumer.grantUpTo(0);
  }

  resume(): void {
    this.#paused = false;
    this.#grantAll();
  }

  async seek(to: SeekTarget): Promise<void> {
    const consumers = this.#consumersToSeek(to);
    for (const consumer of consumers) consumer.checkConnected();
    await Promise.all(consumers.map((consumer) => consumer.seek(to)));
  }

  /**
   * The last message of each topic, by full name with its partition; undefined for a topic that has none.
   * @throws TransportError CONNECTION_LOST (retriable), ALREADY_CLOSED.
   */
  async lastMessageIds(): Promise<ReadonlyMap<string, MessageId | undefined>> {
    this.#checkOpen();
    const consumers = [...this.#consumers.values()];
    return new Map(await Promise.all(consumers.map(async (one) => [one.topic, await one.lastMessageId()] as const)));
  }

  /** Whether all topics were terminated and everything on them is acknowledged: no message will come any more. */
  hasReachedEnd(): boolean {
    return [...this.#consumers.values()].every((consumer) => consumer.hasReachedEnd);
  }

  onState(report: (state: SubscriptionState) => void): void {
    if (typeof (report as unknown) !== 'function') {
      throw new PulseworkError('CONFIGURATION_INVALID', `onState needs a function, got ${describeValue(report)}`);
    }
    this.#report = report;
    for (const consumer of this.#consumers.values()) report(consumer.state);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.remove(() => true);
    this.#queue.answer(undefined);
    this.#forget(this);
    await Promise.all([...this.#consumers.values()].map((consumer) => consumer.close()));
  }

  async #next(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const next = this.#queue.wait(signal);
    this.#grantAll();
    return next;
  }

  #consumerThatTakes(id: MessageId): TopicConsumer {
    const consumer = this.#consumerOf(id);
    consumer.checkId(id);
    return consumer;
  }

  #arrived(messages: readonly ReceivedMessage[]): void {
    for (const message of messages) this.#queue.push(message);
    if (!this.#queue.hasWaiter) return;
    const first = this.#queue.take();
    if (first === undefined) return;
    this.#queue.answer(first);
    this.#handedOn(first);
  }

  #handedOn(message: ReceivedMessage): void {
    const consumer = this.#consumers.get(message.id.topic);
    consumer?.handedOn(1);
    consumer?.grantUpTo(this.#target);
  }

  /** With `prefetch` 0 one message per topic is asked for while a `receive` waits, and none otherwise. */
  get #target(): number {
    if (this.#paused) return 0;
    return this.#share === 0 && this.#queue.hasWaiter ? 1 : this.#share;
  }

  #grantAll(): void {
    for (const consumer of this.#consumers.values()) consumer.grantUpTo(this.#target);
  }

  #redeliverAll(): void {
    this.#checkOpen();
    const consumers = [...this.#consumers.values()];
    // All or none: half of a subscription sent again would look like an order that the topics do not have.
    for (const consumer of consumers) consumer.checkSettles();
    for (const consumer of consumers) consumer.redeliverAll();
  }

  #byConsumer(ids: readonly MessageId[]): Map<TopicConsumer, MessageId[]> {
    const byConsumer = new Map<TopicConsumer, MessageId[]>();
    for (const id of ids) {
      const consumer = this.#consumerOf(id);
      const own = byConsumer.get(consumer);
      if (own === undefined) byConsumer.set(consumer, [id]);
      else own.push(id);
    }
    this.#checkOpen();
    return byConsumer;
  }

  #consumerOf(id: MessageId): TopicConsumer {
    this.#checkOpen();
    checkMessageId(id);
    if (id.batchSize > MAX_BATCH_SIZE) {
      throw new PulseworkError(
        'MESSAGE_ID_INVALID',
        `message id with a batchSize of ${id.batchSize}, at most ${MAX_BATCH_SIZE}`,
      );
    }
    const consumer = this.#consumers.get(id.topic);
    if (consumer !== undefined) return consumer;
    const [only] = this.#consumers.values();
    if (id.topic === '' && this.#consumers.size === 1 && only !== undefined) return only;
    const rule = `subscription "${this.#spec.subscription}" has no topic ${describeValue(id.topic)} that this message id names`;
    throw new PulseworkError('MESSAGE_ID_INVALID', rule);
  }

  #consumersToSeek(to: SeekTarget): readonly TopicConsumer[] {
    this.#checkOpen();
    if (to === 'earliest' || to === 'latest') return [...this.#consumers.values()];
    if (to instanceof Date && !Number.isNaN(to.getTime())) return [...this.#consumers.values()];
    if (typeof to === 'object' && (to as unknown) !== null && !(to instanceof Date)) return [this.#consumerOf(to)];
    const rule = `seek takes a message id, a valid Date, "earliest" or "latest", got ${describeValue(to)}`;
    throw new PulseworkError('MESSAGE_ID_INVALID', rule);
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed(`subscription "${this.#spec.subscription}"`);
  }

  #stateChanged(consumer: TopicConsumer): void {
    try {
      this.#report(consumer.state);
    } catch (error) {
      // Not the connection's fault: it surfaces as an uncaught error, and the connection goes on.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
