// The Subscription port over the wire: one consumer per topic or partition, one receive queue for all of them, and
// permits so that no more than `prefetch` messages lie here beyond those handed on.
import { PulseworkError, TransportError, toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { checkMessageIdList } from '../../core/message-id.js';
import { ReceiveQueue, signalProblem } from '../../core/receive-queue.js';
import { StateListener } from '../../core/state-listener.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import { MAX_BATCH_SIZE } from './ack-set.js';
import type { LastMessage } from './last-message.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { groupedByPart, notOfSubscription, partOf, seeksMessage } from '../../core/topic-parts.js';
import { alreadyClosed } from './server-errors.js';
import type { ConsumerSpec } from './subscribe-command.js';
import { SuspensionLog } from './ordered-negative-ack.js';
import { TopicConsumer } from './topic-consumer.js';
import type { ConsumerOwner } from './topic-consumer.js';
import { TopicConsumers } from './topic-consumers.js';
import type { TopicConsumersParts } from './topic-consumers.js';
import type { TopicSource } from './topic-source.js';
import { acknowledgingIn } from '../../transactions/acknowledging-in.js';
import { transactionOf } from '../../transactions/open-transaction.js';
import type { InTransaction } from '../../ports/transaction.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import type { WireContext } from './wire-context.js';

/** How a subscription is opened, beside what it asks for. */
export interface WireSubscriptionParts {
  readonly source: TopicSource;
  /** Called once at close. */
  readonly forget: (closed: WireSubscription) => void;
  /** Whether no message is asked for before `resume()`. @default false */
  readonly paused?: boolean | undefined;
}

/** Follows the messages on their way through a subscription. */
export interface MessageWatch {
  /** An entry came: these are left of it, and none of them has been handed on. */
  arrived(messages: readonly ReceivedMessage[]): void;
  /** These went out of the queue without being handed on: they come again, here or elsewhere. */
  dropped(messages: readonly ReceivedMessage[]): void;
}

export class WireSubscription implements Subscription {
  readonly #spec: ConsumerSpec;
  readonly #parts: WireSubscriptionParts;
  readonly #queue = new ReceiveQueue();
  /** By full topic name, partitions one by one. */
  readonly #consumers: TopicConsumers;
  readonly #listener = new StateListener<SubscriptionState>();
  readonly #suspensions: SuspensionLog;
  #watch: MessageWatch | undefined;
  #paused: boolean;
  #isOpen = false;
  #closed = false;
  /** Of the client, whose transactions it takes. */
  readonly #context: WireContext;

  private constructor(context: WireContext, spec: ConsumerSpec, parts: WireSubscriptionParts) {
    this.#context = context;
    this.#spec = spec;
    this.#parts = parts;
    this.#paused = parts.paused === true;
    this.#suspensions = new SuspensionLog(context.options.logger, context.options.clock);
    const owner: ConsumerOwner = {
      arrived: (_consumer, messages) => this.#arrived(messages),
      dropQueued: (consumer, drop) => this.#dropQueued(consumer, drop),
      stateChanged: ({ state }) => this.#stateChanged(state),
      isOpen: () => this.#isOpen,
    };
    // What a new partition holds already came after those that are read: from its start, whatever the first position was.
    const grown: ConsumerSpec = { ...spec, initialPosition: 'earliest' };
    const consumers: TopicConsumersParts = {
      subject: `subscription "${spec.subscription}" on ${parts.source.text}`,
      make: (topic, isNewPartition) => new TopicConsumer(context, topic, isNewPartition ? grown : spec, owner),
      skipsMissing: spec.createTopics === false,
      joined: (consumer) => consumer.grantUpTo(this.#target),
      left: (consumer) => this.#left(consumer),
    };
    this.#consumers = new TopicConsumers(consumers, context.options);
  }

  /** All topics that there are or none; those that come later join. @throws TransportError */
  static async open(context: WireContext, spec: ConsumerSpec, parts: WireSubscriptionParts): Promise<WireSubscription> {
    const subscription = new WireSubscription(context, spec, parts);
    try {
      await subscription.#open();
      return subscription;
    } catch (error) {
      await subscription.close();
      throw error;
    }
  }

  async #open(): Promise<void> {
    let latest: readonly string[] | undefined;
    const topics = await this.#parts.source.open((changed) => {
      if (this.#isOpen) this.#consumers.follow(changed);
      else latest = changed;
    });
    await this.#consumers.open(topics);
    this.#isOpen = true;
    this.#grantAll();
    if (latest !== undefined) this.#consumers.follow(latest);
  }

  receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const problem = signalProblem(signal);
    if (problem !== undefined) return Promise.reject(problem);
    if (this.#closed || signal.aborted) return Promise.resolve(undefined);
    const message = this.#queue.take();
    if (message === undefined) return this.#next(signal);
    this.#handedOn(message);
    return Promise.resolve(message);
  }

  /** @param options `{ transaction }`: they are acknowledged once that is committed, see `WireConsumer.acknowledge`. */
  acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void> {
    try {
      const transaction = transactionOf(options, this.#context);
      if (transaction !== undefined) return this.#acknowledgeIn(transaction, ids);
      this.#checkOpen();
      checkMessageIdList(ids);
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

  #acknowledgeIn(transaction: OpenTransaction, ids: readonly MessageId[]): Promise<void> {
    return acknowledgingIn(transaction, () => {
      this.checkIds(ids);
      return [...this.#byConsumer(ids)].map(
        ([consumer, own]) =>
          (sending) =>
            consumer.acknowledgeIn(transaction, own, sending),
      );
    });
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

  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    const failed = this.#byConsumerIfRead(nacked);
    const back = this.#byConsumerIfRead(returned);
    for (const consumer of new Set([...failed.keys(), ...back.keys()])) {
      consumer.negativeAcknowledgeOrdered(failed.get(consumer) ?? [], back.get(consumer) ?? []);
    }
  }

  /** @throws PulseworkError MESSAGE_ID_INVALID when one of `ids` cannot be acknowledged here; TransportError ALREADY_CLOSED. */
  checkIds(ids: readonly MessageId[]): void {
    checkMessageIdList(ids);
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

  /**
   * Whether the topic of `id` is read now; false once it was deleted and has left.
   * @throws PulseworkError MESSAGE_ID_INVALID when `id` is not of this subscription; TransportError ALREADY_CLOSED.
   */
  readsTopicOf(id: MessageId): boolean {
    return this.#consumerIfRead(id) !== undefined;
  }

  pause(): void {
    this.#paused = true;
    for (const consumer of this.#consumers.all()) consumer.grantUpTo(0);
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
    return new Map([...(await this.lastMessages())].map(([topic, { last }]) => [topic, last]));
  }

  /** The same with how far the subscription has come. @throws as above. */
  async lastMessages(): Promise<ReadonlyMap<string, LastMessage>> {
    this.#checkOpen();
    const consumers = this.#consumers.all();
    return new Map(await Promise.all(consumers.map(async (one) => [one.topic, await one.lastMessage()] as const)));
  }

  /** Full names of the topics that are read now, partitions one by one. */
  topics(): readonly string[] {
    return this.states().map(({ topic }) => topic);
  }

  /** Whether all topics were terminated and everything on them is acknowledged: no message will come any more. */
  hasReachedEnd(): boolean {
    const consumers = this.#consumers.all();
    return consumers.length > 0 && consumers.every((consumer) => consumer.hasReachedEnd);
  }

  /** What `onState` tells at once. */
  states(): readonly SubscriptionState[] {
    const states = this.#consumers.all().map(({ state }) => state);
    // One that is still joining tells of itself when it has joined.
    return states.filter(({ connection }) => connection > 0);
  }

  onState(report: (state: SubscriptionState) => void): void {
    this.#listener.listen(report, this.states());
  }

  /** In the turn in which it was opened: before any message. */
  watchMessages(watch: MessageWatch): void {
    this.#watch = watch;
  }

  /** What of the messages that wait to be received `wanted` picks, in order. */
  queued(wanted: (message: ReceivedMessage) => boolean): readonly ReceivedMessage[] {
    return this.#queue.pick(wanted);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.remove(() => true);
    this.#queue.answer(undefined);
    this.#parts.forget(this);
    this.#parts.source.close();
    this.#suspensions.close();
    await this.#consumers.close();
  }

  async #next(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const next = this.#queue.wait(signal);
    // Else whoever took a message has granted the next one already, and there may be a thousand topics.
    if (this.#share > 0) return next;
    this.#grantAll();
    const message = await next;
    // What was granted stays; but a topic that connects again from now on has nobody who waits for its messages.
    this.#grantAll();
    return message;
  }

  #consumerThatTakes(id: MessageId): TopicConsumer {
    const consumer = this.#consumerOf(id);
    consumer.checkId(id);
    return consumer;
  }

  #arrived(messages: readonly ReceivedMessage[]): void {
    this.#watch?.arrived(messages);
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

  #dropQueued({ topic }: TopicConsumer, drop: (message: ReceivedMessage) => boolean): number {
    const dropped = this.#queue.remove((message) => message.id.topic === topic && drop(message));
    if (dropped.length > 0) this.#watch?.dropped(dropped);
    return dropped.length;
  }

  #stateChanged(state: SubscriptionState): void {
    if (state.state === 'suspended') this.#suspensions.suspended(this.#spec.subscription, state.topic);
    this.#listener.tell(state);
  }

  #left(consumer: TopicConsumer): void {
    this.#dropQueued(consumer, () => true);
    this.#listener.tell({ ...consumer.state, state: 'lost' });
    if (!this.#closed) this.#grantAll();
  }

  /** Messages that may lie here per topic; at least 1 unless `prefetch` is 0. */
  get #share(): number {
    const { prefetch } = this.#spec;
    return prefetch === 0 ? 0 : Math.max(1, Math.floor(prefetch / Math.max(1, this.#consumers.size)));
  }

  /** With `prefetch` 0 one message per topic is asked for while a `receive` waits, and none otherwise. */
  get #target(): number {
    if (this.#paused) return 0;
    const share = this.#share;
    return share === 0 && this.#queue.hasWaiter ? 1 : share;
  }

  #grantAll(): void {
    const target = this.#target;
    for (const consumer of this.#consumers.all()) consumer.grantUpTo(target);
  }

  #redeliverAll(): void {
    this.#checkOpen();
    const consumers = this.#consumers.all();
    // All or none: half of a subscription sent again would look like an order that the topics do not have.
    for (const consumer of consumers) consumer.checkSettles();
    for (const consumer of consumers) consumer.redeliverAll();
  }

  #byConsumer(ids: readonly MessageId[]): Map<TopicConsumer, MessageId[]> {
    const byConsumer = groupedByPart(ids, (id) => this.#consumerOf(id));
    this.#checkOpen();
    return byConsumer;
  }

  /** The same without messages of topics that have left. */
  #byConsumerIfRead(ids: readonly MessageId[]): Map<TopicConsumer, MessageId[]> {
    checkMessageIdList(ids);
    return this.#byConsumer(ids.filter((id) => this.readsTopicOf(id)));
  }

  #consumerOf(id: MessageId): TopicConsumer {
    const consumer = this.#consumerIfRead(id);
    if (consumer !== undefined) return consumer;
    const text = `subscription "${this.#spec.subscription}" does not read ${id.topic} any more: the topic was deleted`;
    throw new TransportError('TOPIC_NOT_FOUND', text, { retriable: false });
  }

  /** Undefined for a message of a topic that has left. */
  #consumerIfRead(id: MessageId): TopicConsumer | undefined {
    this.#checkOpen();
    const consumer = partOf(this.#consumers, id);
    if (id.batchSize > MAX_BATCH_SIZE) {
      throw new PulseworkError(
        'MESSAGE_ID_INVALID',
        `message id with a batchSize of ${id.batchSize}, at most ${MAX_BATCH_SIZE}`,
      );
    }
    if (consumer === undefined && !this.#consumers.hasDeparted(id.topic)) {
      throw notOfSubscription(this.#spec.subscription, id);
    }
    return consumer;
  }

  #consumersToSeek(to: SeekTarget): readonly TopicConsumer[] {
    this.#checkOpen();
    return seeksMessage(to) ? [this.#consumerOf(to)] : this.#consumers.all();
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed(`subscription "${this.#spec.subscription}"`);
  }
}
