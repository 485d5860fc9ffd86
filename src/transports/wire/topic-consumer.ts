// The consumer of one topic or partition: its registration at the broker over all reconnects, its permits, its
// acknowledgements. Each registration is a new generation: nothing of an older one counts any more.
import { TransportError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { SubscriptionSpec, SubscriptionType } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SubscriptionState } from '../../ports/transport.js';
import { AckSet } from './ack-set.js';
import { Attachment } from './attachment.js';
import { BatchAcks } from './batch-acks.js';
import type { Connection, ConsumerSide } from './connection.js';
import { decodeArrival } from './entry-decoder.js';
import type { DecodedEntry } from './entry-decoder.js';
import { PendingAcks } from './pending-acks.js';
import { Permits } from './permits.js';
import type { CommandBody } from './protocol/commands.js';
import type { MessageIdData } from './protocol/message-metadata.js';
import { alreadyClosed, connectionLost } from './server-errors.js';
import type { WireContext } from './wire-context.js';

const TYPE_NUMBERS: Readonly<Record<SubscriptionType, number>> = {
  exclusive: 0,
  shared: 1,
  failover: 2,
  'key-shared': 3,
};
const POSITION_NUMBERS = { latest: 0, earliest: 1 } as const;
const INDIVIDUAL = 0;
const CUMULATIVE = 1;
/** Positions that stand for the ends of a topic. */
const EARLIEST: MessageIdData = { ledgerId: -1, entryId: -1 };
const LATEST: MessageIdData = { ledgerId: Infinity, entryId: Infinity };

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
  readonly #acks = new PendingAcks((ids) => this.#sendAcks(INDIVIDUAL, ids));
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
  #seeking: Promise<unknown> | undefined;
  #closed = false;

  constructor(context: WireContext, topic: string, spec: SubscriptionSpec, owner: ConsumerOwner) {
    this.topic = topic;
    this.#context = context;
    this.#spec = spec;
    this.#owner = owner;
    this.#id = context.nextId();
    this.#partition = partitionOf(topic);
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
    if (messagePermits > 0) this.#connection.send('FLOW', { consumerId: this.#id, messagePermits });
  }

  /** `messages` of this consumer left the queue. */
  handedOn(messages: number): void {
    this.#permits.left(messages);
  }

  async acknowledge(ids: readonly MessageId[]): Promise<void> {
    this.checkConnected();
    await this.#acks.add(ids.map((id) => this.#batchAcks.acknowledge(id)));
  }

  async acknowledgeCumulative(id: MessageId): Promise<void> {
    this.checkConnected();
    this.#acks.flush();
    await this.#sendAcks(CUMULATIVE, [this.#batchAcks.acknowledgeThrough(id)]);
  }

  /** Only on Shared and Key_Shared. */
  redeliver(ids: readonly MessageId[]): void {
    const connection = this.checkConnected();
    this.#acks.flush();
    const entries = new Map(ids.map(({ ledgerId, entryId }) => [`${ledgerId}:${entryId}`, { ledgerId, entryId }]));
    // Copies that lie here would be handed on besides the redelivered ones: drop them first (N-33).
    this.#drop(({ id }) => entries.has(`${id.ledgerId}:${id.entryId}`));
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, messageIds: [...entries.values()] });
    this.grantUpTo(this.#target);
  }

  /** Everything that is not acknowledged, from the first on. */
  redeliverAll(): void {
    const connection = this.checkConnected();
    this.#acks.flush();
    this.#epoch += 1;
    this.#drop(() => true);
    connection.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: this.#id, consumerEpoch: this.#epoch });
    this.grantUpTo(this.#target);
  }

  /** The broker closes all consumers of the subscription on the way; they come back once it has answered. */
  async seek(to: MessageId | Date | 'earliest' | 'latest'): Promise<void> {
    const connection = this.checkConnected();
    this.#acks.flush();
    const target = to instanceof Date ? { messagePublishTime: to.getTime() } : { messageId: seekPosition(to) };
    const answer = connection.request('SEEK', { consumerId: this.#id, ...target }, this.topic);
    this.#seeking = answer;
    try {
      await answer;
    } finally {
      this.#seeking = undefined;
    }
  }

  /** Sends what is acknowledged, then leaves. Calling it twice is allowed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#attachment.close();
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#acks.flush();
    this.#connection = undefined;
    connection.consumers.delete(this.#id);
    await connection.request('CLOSE_CONSUMER', { consumerId: this.#id }, this.topic).catch(() => undefined);
    this.#acks.failAll(alreadyClosed(`subscription "${this.#spec.subscription}"`));
  }

  message(message: CommandBody<'MESSAGE'>, section: Buffer): void {
    const place = {
      topic: this.topic,
      partition: this.#partition,
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
    // What lies here goes to the consumer that is active now.
    if (!active) this.#drop(() => true);
    if (this.#connection !== undefined) this.#changeState(active ? 'active' : 'standby');
  }

  detached(reason: Error): void {
    this.#connection = undefined;
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

  async #attach(): Promise<void> {
    await this.#seeking?.catch(() => undefined);
    const connection = await this.#context.lookup.connectionFor(this.topic);
    this.#checkOpen();
    this.#active = undefined;
    connection.consumers.set(this.#id, this);
    try {
      await connection.request('SUBSCRIBE', this.#subscribeBody(), this.topic);
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
    this.#batchAcks.clear();
    this.#decoding = undefined;
    this.#changeState('connected');
    if (this.#active !== undefined) this.#changeState(this.#active ? 'active' : 'standby');
    this.grantUpTo(this.#target);
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

  #subscribeBody(): Omit<CommandBody<'SUBSCRIBE'>, 'requestId'> {
    const { subscription, type, consumerName, initialPosition } = this.#spec;
    return {
      topic: this.topic,
      subscription,
      subType: TYPE_NUMBERS[type],
      consumerId: this.#id,
      consumerName,
      initialPosition: POSITION_NUMBERS[initialPosition],
      ...(type === 'key-shared' ? { keySharedMeta: { keySharedMode: 0 } } : {}),
      ...(redeliversSingly(type) ? {} : { consumerEpoch: this.#epoch }),
    };
  }

  #arrived(message: CommandBody<'MESSAGE'>, decoded: DecodedEntry): void {
    const messages = this.#wanted(message, decoded);
    this.#permits.arrived(decoded.charged, messages.length);
    if (messages.length > 0) this.#owner.arrived(this, messages);
    else this.grantUpTo(this.#target);
  }

  /** The messages of an entry that are handed on; none for an entry that has to be got rid of. */
  #wanted(message: CommandBody<'MESSAGE'>, decoded: DecodedEntry): readonly ReceivedMessage[] {
    if ((message.consumerEpoch ?? this.#epoch) < this.#epoch || this.#active === false) return [];
    const { ledgerId, entryId } = message.messageId;
    const entry = `${ledgerId}:${entryId} of ${this.topic}`;
    const { logger } = this.#context.options;
    switch (decoded.kind) {
      case 'messages': {
        if (decoded.left === undefined) return decoded.messages;
        const position = { ledgerId, entryId, partition: this.#partition };
        const left = this.#batchAcks.arrived(position, decoded.left);
        return left === decoded.left ? decoded.messages : decoded.messages.filter(({ id }) => left.has(id.batchIndex));
      }
      case 'marker':
        this.#discard(message);
        return [];
      case 'encrypted':
        logger?.error(`entry ${entry} is encrypted and there is no key: it stays unacknowledged`);
        return [];
      case 'corrupt':
        logger?.error(`entry ${entry} is corrupt and dropped: ${decoded.fault.reason}`);
        this.#discard(message, decoded.fault.validationError);
        return [];
    }
  }

  #discard(message: CommandBody<'MESSAGE'>, validationError?: number): void {
    const { ledgerId, entryId } = message.messageId;
    const body = { consumerId: this.#id, ackType: INDIVIDUAL, messageId: [{ ledgerId, entryId }], validationError };
    this.#connection?.send('ACK', body);
  }

  #sendAcks(ackType: number, messageId: readonly MessageIdData[]): Promise<unknown> {
    if (this.#connection === undefined) {
      return Promise.reject(connectionLost(`acknowledgements on ${this.topic}: the connection is gone`));
    }
    return this.#connection.requestAck({ consumerId: this.#id, ackType, messageId }, this.topic);
  }

  #drop(drop: (message: ReceivedMessage) => boolean): void {
    this.#permits.left(this.#owner.dropQueued(this, drop));
  }

  #changeState(state: SubscriptionState['state']): void {
    this.#state = state;
    this.#owner.stateChanged(this);
  }
}

function seekPosition(to: MessageId | 'earliest' | 'latest'): MessageIdData {
  if (to === 'earliest') return EARLIEST;
  if (to === 'latest') return LATEST;
  const { ledgerId, entryId, batchIndex, batchSize } = to;
  if (batchIndex < 1 || batchSize < 1) return { ledgerId, entryId };
  const wanted = new AckSet(batchSize);
  wanted.clearThrough(batchIndex - 1);
  return { ledgerId, entryId, ackSet: wanted.words() };
}
