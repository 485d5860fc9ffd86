// A subscription on the embedded broker, over one or several topics, each possibly partitioned: one receive queue, and
// permits so that no more than `prefetch` messages lie here beyond those handed on.
import { TransportError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { checkMessageIdList } from '../../core/message-id.js';
import { ReceiveQueue, signalProblem } from '../../core/receive-queue.js';
import { StateListener } from '../../core/state-listener.js';
import type { InitialPosition, SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { withoutPartition } from '../../core/topic-name.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { groupedByPart, notOfSubscription, partOf, seeksMessage } from '../../core/topic-parts.js';
import type { Logger } from '../../ports/logger.js';
import type { InTransaction } from '../../ports/transaction.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import { acknowledgingIn } from '../../transactions/acknowledging-in.js';
import { transactionOf } from '../../transactions/open-transaction.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { TopicAttachment } from './topic-attachment.js';
import type { TopicSource } from './topic-source.js';

export interface EmbeddedSubscriptionParts {
  readonly broker: EmbeddedBroker;
  readonly spec: SubscriptionSpec;
  readonly source: TopicSource;
  readonly logger: Logger | undefined;
  /** Called once at close. */
  readonly forget: () => void;
}

export class EmbeddedSubscription implements Subscription {
  readonly #parts: EmbeddedSubscriptionParts;
  readonly #spec: SubscriptionSpec;
  readonly #queue = new ReceiveQueue();
  /** By full topic name, partitions one by one. */
  readonly #attachments = new Map<string, TopicAttachment>();
  readonly #listener = new StateListener<SubscriptionState>();
  #paused = false;
  #closed = false;

  /** Connects at once, to all topics or none. @throws TransportError CONSUMER_BUSY, TOPIC_NOT_FOUND. */
  constructor(parts: EmbeddedSubscriptionParts) {
    this.#parts = parts;
    this.#spec = parts.spec;
    const { source, spec } = parts;
    try {
      for (const topic of source.topics()) this.#attach(topic, spec.initialPosition).connect();
    } catch (error) {
      for (const attachment of this.#attachments.values()) attachment.close();
      throw error;
    }
    source.follow(() => this.#follow());
    for (const attachment of this.#attachments.values()) attachment.report();
  }

  async receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const problem = signalProblem(signal);
    if (problem !== undefined) throw problem;
    if (this.#closed || signal.aborted) return undefined;
    const message = this.#queue.take();
    if (message !== undefined) {
      this.#handedOn(message);
      return message;
    }
    const next = this.#queue.wait(signal);
    // Else whoever took a message has granted the next one already, and there may be a thousand topics.
    if (this.#spec.prefetch === 0) this.#grantAll();
    return next;
  }

  async acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void> {
    checkMessageIdList(ids);
    const transaction = transactionOf(options, this.#parts.broker.transactions?.place);
    if (transaction !== undefined) return this.#acknowledgeIn(transaction, ids);
    const [only] = ids;
    if (only !== undefined && ids.length === 1) {
      const stored = this.#attachmentOf(only).connectedLink().acknowledge(ids);
      if (stored !== undefined) await stored;
      return;
    }
    // Sorted by topic first: a foreign id fails the call before anything is acknowledged (G-04).
    const links = [...this.#byAttachment(ids)].map(([one, own]) => [one.connectedLink(), own] as const);
    for (const [link, own] of links) {
      const stored = link.acknowledge(own);
      if (stored !== undefined) await stored;
    }
  }

  /** Each topic takes its own all or none; what fails on one lets none of it be committed. */
  #acknowledgeIn(transaction: OpenTransaction, ids: readonly MessageId[]): Promise<void> {
    return acknowledgingIn(transaction, () => {
      const links = [...this.#byAttachment(ids)].map(([one, own]) => [one.connectedLink(), own] as const);
      return links.map(
        ([link, own]) =>
          (sending) =>
            link.acknowledgeIn(transaction, own, sending),
      );
    });
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    const stored = this.#attachmentOf(id).connectedLink().acknowledgeCumulative(id);
    if (stored !== undefined) await stored;
  }

  async redeliver(ids: readonly MessageId[]): Promise<void> {
    const byAttachment = this.#byAttachment(ids);
    if (ids.length === 0) return;
    const concerned = redeliversSingly(this.#spec.type) ? byAttachment.keys() : this.#attachments.values();
    // All or none: what was asked for before the topic that fails would be asked for, and counted, twice.
    for (const attachment of concerned) attachment.connectedLink();
    if (redeliversSingly(this.#spec.type)) {
      for (const [attachment, own] of byAttachment) this.#redeliverSingly(attachment, own);
    } else {
      this.#dropQueued(() => true);
      for (const attachment of this.#attachments.values()) attachment.connectedLink().redeliverAll();
    }
    this.#grantAll();
  }

  /** Over a connection that is gone nothing is asked: what it brought comes again anyway. */
  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    const failed = this.#byAttachmentIfRead(nacked);
    const back = this.#byAttachmentIfRead(returned);
    for (const attachment of new Set([...failed.keys(), ...back.keys()])) {
      const { orderedNegativeAck = false } = attachment.state;
      const own = back.get(attachment) ?? [];
      // Where the order is not kept nobody is told of it (K-40).
      const told = orderedNegativeAck ? (failed.get(attachment) ?? []) : [];
      attachment.link?.negativeAcknowledgeOrdered(told, own);
      this.#dropCopies(attachment, own);
    }
    this.#grantAll();
  }

  backlog(): number {
    const { broker } = this.#parts;
    const topics = [...this.#attachments.keys()].filter((topic) => broker.hasTopic(topic));
    const own = topics.map((topic) => broker.stats(topic).subscriptions.get(this.#spec.subscription));
    return own.reduce((sum, subscription) => sum + (subscription?.backlog ?? 0), 0);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#grantAll();
  }

  async seek(to: SeekTarget): Promise<void> {
    this.#checkOpen();
    const attachments = seeksMessage(to) ? [this.#attachmentOf(to)] : [...this.#attachments.values()];
    const links = attachments.map((attachment) => attachment.connectedLink());
    for (const link of links) link.seek(to);
    for (const attachment of attachments) attachment.connectAgain();
    const written = this.#parts.broker.written();
    if (written !== undefined) await written;
  }

  /** Full names of the topics that are read now, partitions one by one. */
  topics(): readonly string[] {
    return [...this.#attachments.keys()];
  }

  /** Whether all topics were terminated and everything on them is acknowledged: no message will come any more. */
  hasReachedEnd(): boolean {
    return this.#attachments.size > 0 && [...this.#attachments.values()].every(({ hasReachedEnd }) => hasReachedEnd);
  }

  onState(report: (state: SubscriptionState) => void): void {
    const states = [...this.#attachments.values()].map(({ state }) => state);
    const told = states.filter(({ connection }) => connection > 0);
    this.#listener.listen(report, told);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#parts.source.close();
    for (const attachment of this.#attachments.values()) attachment.close();
    this.#queue.remove(() => true);
    this.#queue.answer(undefined);
    this.#parts.forget();
  }

  #attach(topic: string, initialPosition: InitialPosition): TopicAttachment {
    const { broker, spec } = this.#parts;
    const { subscription, type, consumerName, orderedNegativeAck: mode = 'disabled' } = spec;
    const request = { topic, subscription, type, initialPosition, consumerName };
    const isKept = type === 'key-shared' && broker.options.keySharedNegativeAckOrdering;
    const facts = { request, orderedNegativeAck: isKept && mode !== 'disabled', logger: this.#parts.logger };
    const attachment = new TopicAttachment(broker, facts, {
      arrived: (to, messages) => this.#arrived(to, messages),
      askBack: (from, ids) => this.#askBack(from, ids),
      lost: ({ topic: lost }) => void this.#queue.remove(({ id }) => id.topic === lost),
      connected: (connected) => this.#grant(connected),
      stateChanged: (state) => this.#listener.tell(state),
      wants: (wanted) => this.#parts.source.wants(wanted),
    });
    this.#attachments.set(topic, attachment);
    return attachment;
  }

  /** Topics came or went. */
  #follow(): void {
    const topics = new Set(this.#parts.source.topics());
    const read = new Set([...this.#attachments.keys()].map(withoutPartition));
    for (const [topic, attachment] of this.#attachments) if (!topics.has(topic)) this.#leave(attachment);
    for (const topic of topics) {
      if (this.#attachments.has(topic)) continue;
      // What a new partition holds already came after those that are read: from its start, whatever the first position was.
      const isNewPartition = read.has(withoutPartition(topic)) && withoutPartition(topic) !== topic;
      this.#attach(topic, isNewPartition ? 'earliest' : this.#spec.initialPosition).connectAgain();
    }
    this.#grantAll();
  }

  #leave(attachment: TopicAttachment): void {
    this.#attachments.delete(attachment.topic);
    attachment.close();
    this.#queue.remove(({ id }) => id.topic === attachment.topic);
    this.#listener.tell({ ...attachment.state, state: 'lost' });
  }

  #arrived(attachment: TopicAttachment, messages: readonly ReceivedMessage[]): void {
    if (messages.length === 0) this.#grant(attachment);
    for (const message of messages) this.#queue.push(message);
    if (!this.#queue.hasWaiter) return;
    const first = this.#queue.take();
    if (first === undefined) return;
    this.#queue.answer(first);
    this.#handedOn(first);
  }

  #handedOn(message: ReceivedMessage): void {
    const attachment = this.#attachments.get(message.id.topic);
    if (attachment === undefined) return;
    attachment.link?.handedOn(1);
    this.#grant(attachment);
  }

  /** Messages that may lie here per topic; at least 1 unless `prefetch` is 0. */
  get #share(): number {
    const { prefetch } = this.#spec;
    return prefetch === 0 ? 0 : Math.max(1, Math.floor(prefetch / this.#attachments.size));
  }

  /** With `prefetch` 0 one message per topic is asked for while a `receive` waits, and none otherwise. */
  #grant(attachment: TopicAttachment): void {
    if (this.#paused) return;
    const share = this.#share;
    const target = share === 0 && this.#queue.hasWaiter ? 1 : share;
    if (target > 0) attachment.link?.grantUpTo(target);
  }

  #grantAll(): void {
    for (const attachment of this.#attachments.values()) this.#grant(attachment);
  }

  #askBack(attachment: TopicAttachment, ids: readonly MessageId[]): void {
    if (redeliversSingly(this.#spec.type)) this.#redeliverSingly(attachment, ids);
    else {
      this.#dropQueued(({ id }) => id.topic === attachment.topic);
      attachment.connectedLink().redeliverAll();
    }
    this.#grant(attachment);
  }

  #redeliverSingly(attachment: TopicAttachment, ids: readonly MessageId[]): void {
    this.#dropCopies(attachment, ids);
    attachment.connectedLink().redeliver(ids);
  }

  /** Those that lie here would be handed on besides the ones that come again (N-33). */
  #dropCopies(attachment: TopicAttachment, ids: readonly MessageId[]): void {
    const entries = new Set(ids.map(entryKey));
    this.#dropQueued((message) => message.id.topic === attachment.topic && entries.has(entryKey(message.id)));
  }

  #dropQueued(drop: (message: ReceivedMessage) => boolean): void {
    if (this.#queue.length === 0) return;
    for (const { id } of this.#queue.remove(drop)) this.#attachments.get(id.topic)?.link?.handedOn(1);
  }

  #byAttachment(ids: readonly MessageId[]): Map<TopicAttachment, MessageId[]> {
    this.#checkOpen();
    return groupedByPart(ids, (id) => this.#attachmentOf(id));
  }

  /** Without what came from a topic that has left meanwhile. */
  #byAttachmentIfRead(ids: readonly MessageId[]): Map<TopicAttachment, MessageId[]> {
    this.#checkOpen();
    checkMessageIdList(ids);
    const read = ids.filter((id) => partOf(this.#attachments, id) !== undefined);
    return this.#byAttachment(read);
  }

  #attachmentOf(id: MessageId): TopicAttachment {
    this.#checkOpen();
    const attachment = partOf(this.#attachments, id);
    if (attachment === undefined) throw notOfSubscription(this.#spec.subscription, id);
    return attachment;
  }

  #checkOpen(): void {
    if (!this.#closed) return;
    const text = `subscription "${this.#spec.subscription}" is closed`;
    throw new TransportError('ALREADY_CLOSED', text, { retriable: false });
  }
}

function entryKey(id: MessageId): string {
  return `${id.ledgerId}:${id.entryId}`;
}
