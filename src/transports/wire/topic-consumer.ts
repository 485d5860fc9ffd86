// The consumer of one topic or partition: its registration at the broker over all reconnects, its permits, its
// acknowledgements. Each registration is a new generation: nothing of an older one counts any more.
import { TransportError, toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SubscriptionState } from '../../ports/transport.js';
import { Attachment } from './attachment.js';
import type { BrokerAddress, Connection, ConsumerSide } from './connection.js';
import { DEFAULT_CHUNK_LIMITS } from '../../chunks/chunk.js';
import { EntryAcks, placeOf } from './entry-acks.js';
import { EntryArrivals } from './entry-arrivals.js';
import type { Verdict } from './entry-intake.js';
import { askLastMessage } from './last-message.js';
import type { LastMessage } from './last-message.js';
import { NextOccurrence } from './next-occurrence.js';
import { keepsOrder, missesOrder, orderNotKept, orderedNegativeAcks } from './ordered-negative-ack.js';
import { PendingAcks } from './pending-acks.js';
import type { AckType } from './pending-acks.js';
import { Permits } from './permits.js';
import type { CommandBody } from './protocol/commands.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import { SeekLine } from './seek-line.js';
import { seekPosition } from './seek-position.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import type { HostPort } from './service-url.js';
import { subscribeBody } from './subscribe-command.js';
import type { ConsumerSpec } from './subscribe-command.js';
import { TopicPlace } from './topic-place.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import { TransactionalAcks } from './transactional-acks.js';
import type { WireContext } from './wire-context.js';

const ACK_NUMBERS: Readonly<Record<AckType, number>> = { individual: 0, cumulative: 1 };
/** Permits that are worth a system call of their own. */
const LARGE_GRANT = 100;

/** What a consumer tells its subscription. */
export interface ConsumerOwner {
  arrived(consumer: TopicConsumer, messages: readonly ReceivedMessage[]): void;
  /** What of this consumer lies in the queue is to be dropped where `drop` says so. Returns how many were. */
  dropQueued(consumer: TopicConsumer, drop: (message: ReceivedMessage) => boolean): number;
  stateChanged(consumer: TopicConsumer): void;
  /** Whether all of the first topics were attached: from then on a broker that cannot do what is required suspends its topic. */
  readonly isOpen: () => boolean;
}

export class TopicConsumer implements ConsumerSide {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly #context: WireContext;
  readonly #spec: ConsumerSpec;
  readonly #owner: ConsumerOwner;
  readonly #id: number;
  readonly #partition: number;
  readonly #attachment: Attachment;
  readonly #permits = new Permits();
  readonly #entryAcks = new EntryAcks();
  readonly #arrivals: EntryArrivals;
  readonly #acks: PendingAcks;
  readonly #inTransactions: TransactionalAcks;
  #connection: Connection | undefined;
  #generation = 0;
  #state: SubscriptionState['state'] = 'lost';
  /** What the broker said of a Failover consumer of this registration. */
  #active: boolean | undefined;
  /** Grows with each request to send everything again; older messages are dropped. Exclusive and Failover only. */
  #epoch = 0;
  /** How many messages may lie here; set by the owner, 0 while nothing is wanted. */
  #target = 0;
  /** Until one has its answer the consumer is not attached again. */
  readonly #seeks = new SeekLine();
  readonly #nextRegistration: NextOccurrence;
  readonly #place: TopicPlace;
  #endReached = false;
  #closed = false;

  constructor(context: WireContext, topic: string, spec: ConsumerSpec, owner: ConsumerOwner) {
    this.topic = topic;
    this.#context = context;
    this.#spec = spec;
    this.#owner = owner;
    this.#id = context.nextId();
    this.#partition = partitionOf(topic);
    this.#place = new TopicPlace(context, topic);
    this.#nextRegistration = new NextOccurrence(context.options.clock);
    const { clock, logger } = context.options;
    this.#arrivals = new EntryArrivals({
      ...{ topic, partition: this.#partition, acks: this.#entryAcks, clock, logger },
      chunkLimits: spec.chunkLimits ?? DEFAULT_CHUNK_LIMITS,
      isStale: ({ consumerEpoch = this.#epoch }) => consumerEpoch < this.#epoch || this.#active === false,
      mayArrive: () => this.#permits.areLeft,
      judged: (verdict, charged) => this.#carryOut(verdict, charged),
    });
    this.#acks = new PendingAcks(
      clock,
      (type, ids) => this.#sendAcks(type, ids),
      (items) => this.#entryAcks.confirmed(items),
    );
    const settling = { spec, consumerId: this.#id, entryAcks: this.#entryAcks, acks: this.#acks };
    this.#inTransactions = new TransactionalAcks(this, settling);
    const parts = {
      subject: `subscription "${spec.subscription}" on ${topic}`,
      attach: () => this.#attach(),
      // A deleted topic may be made again, a right may be granted again: a subscription never gives up by itself.
      givesUp: () => false,
      failed: () => undefined,
    };
    this.#attachment = new Attachment(parts, context.options);
  }

  get state(): SubscriptionState {
    const orderedNegativeAck = keepsOrder(this.#spec, this.#connection);
    return { topic: this.topic, connection: this.#generation, state: this.#state, orderedNegativeAck };
  }

  /** @throws TransportError */
  open(): Promise<void> {
    return this.#attachment.open();
  }

  /** Grants permits so that `target` messages lie here or are on their way. */
  grantUpTo(target: number): void {
    this.#target = target;
    if (this.#connection === undefined || this.#state === 'suspended' || target < 1) return;
    const messagePermits = this.#permits.take(target);
    if (messagePermits < 1) return;
    this.#connection.send('FLOW', { consumerId: this.#id, messagePermits });
    // The turn may last as long as there are messages here: the broker sends the next ones meanwhile.
    if (messagePermits >= LARGE_GRANT) this.#connection.flush();
  }

  /** `messages` of this consumer left the queue. */
  handedOn(messages: number): void {
    this.#permits.left(messages);
  }

  /** @throws PulseworkError MESSAGE_ID_INVALID when `id` cannot be acknowledged. */
  checkId(id: MessageId): void {
    this.#entryAcks.check(id);
  }

  /** Not an async function: those of one turn share a promise, where one for each message would cost more than the rest. */
  acknowledge(id: MessageId): Promise<void> {
    try {
      this.checkSettles();
    } catch (error) {
      return Promise.reject(toError(error));
    }
    return this.#acks.add(this.#entryAcks.acknowledge(id));
  }

  /** As parts of `transaction`. Resolves once they are in there. @throws TransportError, see `TransactionalAcks`. */
  acknowledgeIn(transaction: OpenTransaction, ids: readonly MessageId[], sending: () => void): Promise<void> {
    return this.#inTransactions.acknowledge(transaction, ids, sending);
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    this.checkSettles();
    const items = this.#entryAcks.acknowledgeThrough(id);
    await Promise.all(items.map((item) => this.#acks.addCumulative(item)));
  }

  /** Only on Shared and Key_Shared. */
  redeliver(ids: readonly MessageId[]): void {
    const connection = this.checkSettles();
    this.#acks.flush();
    const messageIds = this.#giveBack(ids);
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, messageIds });
    this.grantUpTo(this.#target);
  }

  /** See `Subscription`. A broker that does not keep the order gets back what is returned all the same, counted. */
  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    const connection = this.#connection;
    if (connection === undefined || this.#seeks.isAsked) return; // All of it comes again.
    if (!keepsOrder(this.#spec, connection)) return returned.length === 0 ? undefined : this.redeliver(returned);
    this.#acks.flush();
    const commands = orderedNegativeAcks(this.#id, this.#entryAcks.failed(nacked), this.#giveBack(returned));
    for (const command of commands) connection.send('NEGATIVE_ACK', command);
    this.grantUpTo(this.#target);
  }

  /** Everything that is not acknowledged, from the first on. */
  redeliverAll(): void {
    const connection = this.checkSettles();
    this.#acks.flush();
    this.#epoch += 1;
    this.#arrivals.forgetIncomplete();
    this.#drop(() => true);
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, consumerEpoch: this.#epoch });
    this.grantUpTo(this.#target);
  }

  /** Moves the subscription and resolves once this consumer is attached to it again, or after one request's time. */
  seek(to: SeekTarget): Promise<void> {
    return this.#seeks.run(() => this.#seekNow(to));
  }

  /** @throws TransportError; PulseworkError MESSAGE_ID_INVALID above 2^53-1. */
  async lastMessage(): Promise<LastMessage> {
    const { topic } = this;
    return askLastMessage(this.checkConnected(), { topic, partition: this.#partition, consumerId: this.#id });
  }

  /** Whether the topic was terminated and all of it is acknowledged. */
  get hasReachedEnd(): boolean {
    return this.#endReached;
  }

  /** Sends what is acknowledged, then leaves. Calling it twice is allowed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#attachment.close();
    this.#nextRegistration.happened();
    this.#arrivals.reset();
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#acks.flush();
    this.#connection = undefined;
    connection.consumers.delete(this.#id);
    await connection.request('CLOSE_CONSUMER', { consumerId: this.#id }, this.topic).catch(() => undefined);
    this.#acks.failAll(alreadyClosed(`subscription "${this.#spec.subscription}"`));
  }

  message(message: CommandBody<'MESSAGE'>, section: Buffer): void {
    this.#attachment.worked();
    const maxMessageBytes = this.#connection?.maxMessageBytes ?? 0;
    this.#arrivals.take(message, section, { generation: this.#generation, maxMessageBytes });
  }

  activeChanged(active: boolean): void {
    this.#active = active;
    // What lies here, or was handed on and is not settled, goes to the consumer that is active now.
    if (!active) {
      this.#arrivals.forgetIncomplete();
      this.#drop(() => true);
      this.#entryAcks.gaveBackAll();
    }
    if (this.#connection !== undefined) this.#changeState(active ? 'active' : 'standby');
  }

  endReached(): void {
    this.#endReached = true;
    this.#context.options.logger?.info(`subscription "${this.#spec.subscription}" is at the end of ${this.topic}`);
  }

  detached(reason: Error, assigned?: BrokerAddress): void {
    this.#connection = undefined;
    this.#place.left(reason, assigned);
    this.#arrivals.reset();
    const lost = connectionLost(`subscription "${this.#spec.subscription}": ${reason.message}`, reason);
    this.#acks.failAll(lost);
    this.#inTransactions.failAll(lost);
    this.#drop(() => true);
    if (this.#state !== 'lost') this.#changeState('lost');
    this.#attachment.lost();
  }

  migrated(cluster: readonly HostPort[]): void {
    this.#place.migratedTo(cluster);
  }

  /** @throws TransportError ALREADY_CLOSED, CONNECTION_LOST. */
  checkConnected(): Connection {
    const { subscription } = this.#spec;
    if (this.#closed) throw alreadyClosed(`subscription "${subscription}"`);
    if (this.#connection !== undefined) return this.#connection;
    throw connectionLost(
      `subscription "${subscription}" lost its connection for ${this.topic} and waits for a new one`,
    );
  }

  /** The same where something is to be settled: after a seek it would settle what was asked for again. */
  checkSettles(): Connection {
    const connection = this.checkConnected();
    if (!this.#seeks.isAsked) return connection;
    throw connectionLost(`subscription "${this.#spec.subscription}" on ${this.topic} is being moved by a seek`);
  }

  async #attach(): Promise<void> {
    await this.#seeks.answered();
    const connection = await this.#place.connect();
    this.#checkOpen();
    // Opening fails; later the topic is suspended instead (K-50).
    if (missesOrder(this.#spec, connection) && !this.#owner.isOpen()) {
      throw orderNotKept(this.topic, this.#context.options.experimentalOrderedNegativeAck);
    }
    this.#active = undefined;
    this.#endReached = false;
    connection.consumers.set(this.#id, this);
    try {
      const parts = { topic: this.topic, consumerId: this.#id, consumerEpoch: this.#epoch };
      const answer = connection.request('SUBSCRIBE', subscribeBody(this.#spec, parts), this.topic);
      await this.#place.unlessLeft(answer);
    } catch (error) {
      connection.consumers.delete(this.#id);
      // Without an answer the broker may have it all the same, holding messages that nobody reads.
      if (error instanceof TransportError && error.code === 'CALL_TIMED_OUT') this.#leave(connection);
      throw error;
    }
    this.#leaveIfClosed(connection);
    if (!connection.isOpen || connection.consumers.get(this.#id) !== this) {
      throw connectionLost(`subscription on ${this.topic}: closed while it was registered`);
    }
    this.#registered(connection);
  }

  #registered(connection: Connection): void {
    this.#connection = connection;
    this.#generation += 1;
    this.#permits.reset();
    this.#entryAcks.registered();
    this.#changeState(missesOrder(this.#spec, connection) ? 'suspended' : 'connected');
    if (this.#active !== undefined) this.#changeState(this.#active ? 'active' : 'standby');
    this.grantUpTo(this.#target);
    this.#nextRegistration.happened();
  }

  /** The broker closes the consumers on the way, before or after its answer (G-03); they come back afterwards. */
  async #seekNow(to: SeekTarget): Promise<void> {
    const connection = this.checkConnected();
    this.#acks.flush();
    const position = seekPosition(this.#entryAcks.seekTarget(to));
    const answer = connection.request('SEEK', { consumerId: this.#id, ...position }, this.topic);
    await this.#seeks.ask(answer, () => {
      if (this.#connection !== connection) return;
      // Still attached: what lies here, or is on its way, is from before. Only a new registration tells old from new.
      connection.consumers.delete(this.#id);
      this.#leave(connection);
      this.detached(connectionLost('it was moved by a seek'));
    });
    await this.#nextRegistration.wait(this.#context.options.requestTimeoutMs);
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed(`subscription "${this.#spec.subscription}"`);
  }

  /** It was closed while the broker registered it: nobody would read what it holds. */
  #leaveIfClosed(connection: Connection): void {
    if (!this.#closed) return;
    connection.consumers.delete(this.#id);
    this.#leave(connection);
    this.#checkOpen();
  }

  #leave(connection: Connection): void {
    connection.request('CLOSE_CONSUMER', { consumerId: this.#id }, this.topic).catch(() => undefined);
  }

  #carryOut(verdict: Verdict, charged: number): void {
    const messages = verdict.kind === 'hand-on' ? verdict.messages : [];
    this.#permits.arrived(charged, messages.length);
    if (messages.length > 0) this.#owner.arrived(this, messages);
    else this.grantUpTo(this.#target);
    if (verdict.kind === 'get-rid') this.#discard(verdict.entries, verdict.validationError);
    if (verdict.kind === 'ask-back') this.#askBack(verdict.entries);
  }

  #discard(entries: readonly EntryPosition[], validationError: number | undefined): void {
    const body = { consumerId: this.#id, ackType: ACK_NUMBERS.individual, messageId: entries.map(placeOf) };
    this.#connection?.send('ACK', { ...body, validationError });
  }

  #askBack(entries: readonly EntryPosition[]): void {
    if (this.#seeks.isAsked) return; // Then all of it comes again.
    if (!redeliversSingly(this.#spec.type)) return this.redeliverAll();
    const body = { consumerId: this.#id, messageIds: entries.map(placeOf) };
    this.#connection?.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', body);
  }

  #sendAcks(type: AckType, messageId: readonly MessageIdData[]): Promise<unknown> {
    if (this.#connection === undefined) {
      return Promise.reject(connectionLost(`acknowledgements on ${this.topic}: the connection is gone`));
    }
    return this.#connection.requestAck({ consumerId: this.#id, ackType: ACK_NUMBERS[type], messageId }, this.topic);
  }

  /** What names these messages, which are here no more. */
  #giveBack(ids: readonly MessageId[]): readonly MessageIdData[] {
    const own = ids.map((id) => ({ ...id, partition: this.#partition }));
    const entries = new Set(ids.map(({ ledgerId, entryId }) => `${ledgerId}:${entryId}`));
    // Copies that lie here would be handed on besides the redelivered ones: drop them first (N-33).
    this.#drop(({ id }) => entries.has(`${id.ledgerId}:${id.entryId}`));
    return this.#entryAcks.gaveBack(own).map(placeOf);
  }

  #drop(drop: (message: ReceivedMessage) => boolean): void {
    this.#permits.left(this.#owner.dropQueued(this, drop));
  }

  #changeState(state: SubscriptionState['state']): void {
    this.#state = state;
    this.#owner.stateChanged(this);
  }
}
