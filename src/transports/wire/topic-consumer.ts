// The consumer of one topic or partition: its registration at the broker over all reconnects, its permits, its
// acknowledgements. Each registration is a new generation: nothing of an older one counts any more.
import { TransportError, toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import { checkMessageId } from '../../core/message-id.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SubscriptionState } from '../../ports/transport.js';
import { Attachment } from './attachment.js';
import { BatchAcks } from './batch-acks.js';
import type { BrokerAddress, Connection, ConsumerSide } from './connection.js';
import { decodeArrival } from './entry-decoder.js';
import type { DecodedEntry } from './entry-decoder.js';
import { EntryIntake } from './entry-intake.js';
import type { Verdict } from './entry-intake.js';
import { NextOccurrence } from './next-occurrence.js';
import { PendingAcks } from './pending-acks.js';
import type { AckType } from './pending-acks.js';
import { Permits } from './permits.js';
import type { CommandBody } from './protocol/commands.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import { seekPosition } from './seek-position.js';
import type { SeekTarget } from './seek-position.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import { subscribeBody } from './subscribe-command.js';
import type { WireContext } from './wire-context.js';

const ACK_NUMBERS: Readonly<Record<AckType, number>> = { individual: 0, cumulative: 1 };
/** Permits that are worth a system call of their own. */
const LARGE_GRANT = 100;
const LEAVE: Verdict = { kind: 'leave' };

/** What a consumer tells its subscription. */
export interface ConsumerOwner {
  arrived(consumer: TopicConsumer, messages: readonly ReceivedMessage[]): void;
  /** What of this consumer lies in the queue is to be dropped where `drop` says so. Returns how many were. */
  dropQueued(consumer: TopicConsumer, drop: (message: ReceivedMessage) => boolean): number;
  stateChanged(consumer: TopicConsumer): void;
}

export class TopicConsumer implements ConsumerSide {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly #context: WireContext;
  readonly #spec: SubscriptionSpec;
  readonly #owner: ConsumerOwner;
  readonly #id: number;
  readonly #partition: number;
  readonly #attachment: Attachment;
  readonly #permits = new Permits();
  readonly #batchAcks = new BatchAcks();
  readonly #intake: EntryIntake;
  readonly #acks: PendingAcks;
  #connection: Connection | undefined;
  #generation = 0;
  #state: SubscriptionState['state'] = 'lost';
  /** What the broker said of a Failover consumer of this registration. */
  #active: boolean | undefined;
  /** Grows with each request to send everything again; older messages are dropped. Exclusive and Failover only. */
  #epoch = 0;
  /** How many messages may lie here; set by the owner, 0 while nothing is wanted. */
  #target = 0;
  /** Entries that wait for a codec, in line. */
  #decoding: Promise<void> | undefined;
  /** The SEEK that waits for its answer: until then the consumer is not attached again. */
  #seeking: Promise<unknown> | undefined;
  /** Seeks one after the other. */
  #seeks: Promise<unknown> = Promise.resolve();
  readonly #nextRegistration: NextOccurrence;
  /** Where the topic is now, as the broker that closed this consumer said. */
  #assigned: BrokerAddress | undefined;
  #endReached = false;
  #closed = false;

  constructor(context: WireContext, topic: string, spec: SubscriptionSpec, owner: ConsumerOwner) {
    this.topic = topic;
    this.#context = context;
    this.#spec = spec;
    this.#owner = owner;
    this.#id = context.nextId();
    this.#partition = partitionOf(topic);
    this.#nextRegistration = new NextOccurrence(context.options.clock);
    this.#intake = new EntryIntake(topic, this.#batchAcks, context.options.logger);
    this.#acks = new PendingAcks(
      context.options.clock,
      (type, ids) => this.#sendAcks(type, ids),
      (items) => this.#batchAcks.confirmed(items),
    );
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
    return { topic: this.topic, connection: this.#generation, state: this.#state };
  }

  /** @throws TransportError */
  open(): Promise<void> {
    return this.#attachment.open();
  }

  /** Grants permits so that `target` messages lie here or are on their way. */
  grantUpTo(target: number): void {
    this.#target = target;
    if (this.#connection === undefined || target < 1) return;
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
    this.#batchAcks.check(id);
  }

  /** Not an async function: those of one turn share a promise, where one for each message would cost more than the rest. */
  acknowledge(id: MessageId): Promise<void> {
    try {
      this.checkSettles();
    } catch (error) {
      return Promise.reject(toError(error));
    }
    return this.#acks.add(this.#batchAcks.acknowledge(id));
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    this.checkSettles();
    const items = this.#batchAcks.acknowledgeThrough(id);
    await Promise.all(items.map((item) => this.#acks.addCumulative(item)));
  }

  /** Only on Shared and Key_Shared. */
  redeliver(ids: readonly MessageId[]): void {
    const connection = this.checkSettles();
    this.#acks.flush();
    const entries = new Map(ids.map(({ ledgerId, entryId }) => [`${ledgerId}:${entryId}`, { ledgerId, entryId }]));
    // Copies that lie here would be handed on besides the redelivered ones: drop them first (N-33).
    this.#drop(({ id }) => entries.has(`${id.ledgerId}:${id.entryId}`));
    for (const entry of entries.values()) this.#batchAcks.gaveBack({ ...entry, partition: this.#partition });
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, messageIds: [...entries.values()] });
    this.grantUpTo(this.#target);
  }

  /** Everything that is not acknowledged, from the first on. */
  redeliverAll(): void {
    const connection = this.checkSettles();
    this.#acks.flush();
    this.#epoch += 1;
    this.#drop(() => true);
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, consumerEpoch: this.#epoch });
    this.grantUpTo(this.#target);
  }

  /** Moves the subscription and resolves once this consumer is attached to it again, or after one request's time. */
  async seek(to: SeekTarget): Promise<void> {
    const inLine = this.#seeks.then(() => this.#seekNow(to));
    this.#seeks = inLine.catch(() => undefined);
    await inLine;
  }

  /** The last message of the topic; undefined while it has none. @throws PulseworkError MESSAGE_ID_INVALID above 2^53-1. */
  async lastMessageId(): Promise<MessageId | undefined> {
    const answer = await this.checkConnected().request('GET_LAST_MESSAGE_ID', { consumerId: this.#id }, this.topic);
    if (answer.name !== 'GET_LAST_MESSAGE_ID_RESPONSE') {
      throw connectionLost(`last message id of ${this.topic}: the broker answered ${answer.name}`);
    }
    const { ledgerId, entryId, batchIndex = -1 } = answer.body.lastMessageId;
    if (entryId < 0) return undefined;
    const place = { ledgerId, entryId, partition: this.#partition };
    const id = { ...place, batchIndex, batchSize: batchIndex + 1, topic: this.topic };
    checkMessageId(id);
    return id;
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
    const place = {
      topic: this.topic,
      partition: this.#partition,
      redeliveryCount: this.#intake.redeliveryCount(this.#positionOf(message), message.redeliveryCount ?? 0),
      connection: this.#generation,
      maxMessageBytes: this.#connection?.maxMessageBytes ?? 0,
    };
    const decoded = decodeArrival(message, section, place);
    if (this.#decoding === undefined && !(decoded instanceof Promise)) return this.#arrived(message, decoded);
    const generation = this.#generation;
    const line = (this.#decoding ?? Promise.resolve())
      .then(() => decoded)
      .then((entry) => {
        if (generation === this.#generation && this.#connection !== undefined) this.#arrived(message, entry);
        if (this.#decoding === line) this.#decoding = undefined;
      });
    this.#decoding = line;
  }

  activeChanged(active: boolean): void {
    this.#active = active;
    // What lies here, or was handed on and is not settled, goes to the consumer that is active now.
    if (!active) {
      this.#drop(() => true);
      this.#batchAcks.gaveBackAll();
    }
    if (this.#connection !== undefined) this.#changeState(active ? 'active' : 'standby');
  }

  endReached(): void {
    this.#endReached = true;
    this.#context.options.logger?.info(`subscription "${this.#spec.subscription}" is at the end of ${this.topic}`);
  }

  detached(reason: Error, assigned?: BrokerAddress): void {
    this.#connection = undefined;
    this.#assigned = assigned;
    this.#acks.failAll(connectionLost(`subscription "${this.#spec.subscription}": ${reason.message}`, reason));
    this.#drop(() => true);
    if (this.#state !== 'lost') this.#changeState('lost');
    this.#attachment.lost();
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
    if (this.#seeking === undefined) return connection;
    throw connectionLost(`subscription "${this.#spec.subscription}" on ${this.topic} is being moved by a seek`);
  }

  async #attach(): Promise<void> {
    await this.#seeking?.catch(() => undefined);
    const connection = await this.#connect();
    this.#checkOpen();
    this.#active = undefined;
    this.#endReached = false;
    connection.consumers.set(this.#id, this);
    try {
      const parts = { topic: this.topic, consumerId: this.#id, consumerEpoch: this.#epoch };
      await connection.request('SUBSCRIBE', subscribeBody(this.#spec, parts), this.topic);
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

  /** An assigned broker is tried once; whatever goes wrong with it, a lookup tells more. */
  #connect(): Promise<Connection> {
    const assigned = this.#assigned;
    this.#assigned = undefined;
    if (assigned === undefined) return this.#context.lookup.connectionFor(this.topic);
    return this.#context.pool.to(assigned.physical, assigned.proxyToBroker);
  }

  #registered(connection: Connection): void {
    this.#connection = connection;
    this.#generation += 1;
    this.#permits.reset();
    this.#batchAcks.clear();
    this.#decoding = undefined;
    this.#changeState('connected');
    if (this.#active !== undefined) this.#changeState(this.#active ? 'active' : 'standby');
    this.grantUpTo(this.#target);
    this.#nextRegistration.happened();
  }

  /** The broker closes the consumers on the way, before or after its answer (G-03); they come back afterwards. */
  async #seekNow(to: SeekTarget): Promise<void> {
    const connection = this.checkConnected();
    this.#acks.flush();
    this.#seeking = connection.request('SEEK', { consumerId: this.#id, ...seekPosition(to) }, this.topic);
    try {
      await this.#seeking;
    } finally {
      this.#seeking = undefined;
    }
    // Still attached: what lies here, or is on its way, is from before. Only a new registration tells old from new.
    if (this.#connection === connection) {
      connection.consumers.delete(this.#id);
      this.#leave(connection);
      this.detached(connectionLost('it was moved by a seek'));
    }
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

  #arrived(message: CommandBody<'MESSAGE'>, decoded: DecodedEntry): void {
    const position = this.#positionOf(message);
    const isStale = (message.consumerEpoch ?? this.#epoch) < this.#epoch || this.#active === false;
    const verdict = isStale ? LEAVE : this.#intake.judge(position, decoded);
    const messages = verdict.kind === 'hand-on' ? verdict.messages : [];
    this.#permits.arrived(decoded.charged, messages.length);
    if (messages.length > 0) this.#owner.arrived(this, messages);
    else this.grantUpTo(this.#target);
    if (verdict.kind === 'get-rid') this.#discard(position, verdict.validationError);
    if (verdict.kind === 'ask-back') this.#askBack(position);
  }

  #discard({ ledgerId, entryId }: EntryPosition, validationError: number | undefined): void {
    const body = { consumerId: this.#id, ackType: ACK_NUMBERS.individual, messageId: [{ ledgerId, entryId }] };
    this.#connection?.send('ACK', { ...body, validationError });
  }

  #askBack({ ledgerId, entryId }: EntryPosition): void {
    if (this.#seeking !== undefined) return; // Then all of it comes again.
    if (!redeliversSingly(this.#spec.type)) return this.redeliverAll();
    const body = { consumerId: this.#id, messageIds: [{ ledgerId, entryId }] };
    this.#connection?.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', body);
  }

  #positionOf({ messageId }: CommandBody<'MESSAGE'>): EntryPosition {
    return { ledgerId: messageId.ledgerId, entryId: messageId.entryId, partition: this.#partition };
  }

  #sendAcks(type: AckType, messageId: readonly MessageIdData[]): Promise<unknown> {
    if (this.#connection === undefined) {
      return Promise.reject(connectionLost(`acknowledgements on ${this.topic}: the connection is gone`));
    }
    return this.#connection.requestAck({ consumerId: this.#id, ackType: ACK_NUMBERS[type], messageId }, this.topic);
  }

  #drop(drop: (message: ReceivedMessage) => boolean): void {
    this.#permits.left(this.#owner.dropQueued(this, drop));
  }

  #changeState(state: SubscriptionState['state']): void {
    this.#state = state;
    this.#owner.stateChanged(this);
  }
}
