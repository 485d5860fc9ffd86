// The producer of one topic or partition: its registration at the broker over all reconnects, and the entries without a
// receipt, which are sent again in order, unchanged, after each new registration.
import { TransportError } from '../../core/errors.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionOf } from '../../core/topic-name.js';
import { Attachment } from './attachment.js';
import { Batcher } from './batcher.js';
import type { BrokerAddress, Connection, ProducerSide } from './connection.js';
import { entryOf } from './entry-encoder.js';
import type { EntryOrigin } from './entry-encoder.js';
import type { OutgoingBatch } from './outgoing-batch.js';
import { chunkEntriesOf } from './outgoing-chunks.js';
import { PendingEntries, isEndOfMessage } from './pending-entries.js';
import type { PendingEntry } from './pending-entries.js';
import type { PendingMessage } from './pending-message.js';
import type { EntryPlace, PendingReceipts } from './pending-receipts.js';
import type { CommandBody } from './protocol/commands.js';
import { freeFrameMemory } from './protocol/frame-memory.js';
import { isIntactSend, sectionBytesOf } from './protocol/frames.js';
import { endedUnsent, messageTooLarge, nameUsedUp, overtaken, storedOutOfReach } from './publish-errors.js';
import { ACCESS_MODE_NUMBERS } from './publisher-options.js';
import type { ResolvedPublisherOptions } from './publisher-options.js';
import { SendTimeout } from './send-timeout.js';
import { SERVER_ERROR, alreadyClosed, connectionLost, serverError } from './server-errors.js';
import type { HostPort } from './service-url.js';
import { TopicPlace } from './topic-place.js';
import type { WireContext } from './wire-context.js';

/** The place of an entry that the broker had before, under another receipt. */
const NOWHERE = { ledgerId: -1, entryId: -1 } as const;

export interface TopicProducerParts {
  readonly options: ResolvedPublisherOptions;
  readonly compression: EntryOrigin['compression'];
  /** What the broker takes for one entry, metadata included. */
  readonly maxEntryBytes: () => number;
  /** Told once of each message that was published: it has its receipt, or failed. */
  readonly done: (receipts: Pick<PendingReceipts, 'count' | 'bytes'>) => void;
}

export class TopicProducer implements ProducerSide {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly #context: WireContext;
  readonly #parts: TopicProducerParts;
  readonly #id: number;
  readonly #partition: number;
  readonly #place: TopicPlace;
  readonly #byKey: boolean;
  readonly #attachment: Attachment;
  readonly #batcher: Batcher;
  readonly #pending = new PendingEntries();
  readonly #timeout: SendTimeout;
  /** Where frames go; undefined while the broker would not take them. */
  #connection: Connection | undefined;
  /** Asked for, or given by the broker at the first registration and asked for again at the others. */
  #name: string | undefined;
  /** Of entries that were changed on their way and go there once more. */
  readonly #refused = new Set<number>();
  #registered = false;
  /** The broker has it in line behind the producer that has the topic for itself. */
  #queued = false;
  #epoch = 0;
  #topicEpoch: number | undefined;
  #schemaVersion: Uint8Array | undefined;
  #lastSequenceId = -1;
  /** The highest sequence id whose entry failed without a receipt: who publishes it again sends it a second time. */
  #givenUpTo = -1;
  #closing = false;
  /** Why no more can be published, ever. */
  #dead: Error | undefined;

  constructor(context: WireContext, topic: string, parts: TopicProducerParts) {
    this.topic = topic;
    this.#context = context;
    this.#parts = parts;
    this.#id = context.nextId();
    this.#partition = partitionOf(topic);
    this.#place = new TopicPlace(context, topic);
    this.#name = parts.options.producerName;
    this.#byKey = parts.options.batching?.byKey === true;
    this.#batcher = new Batcher(parts.options.batching, context.options.clock, (batch) => this.#send(batch));
    const { sendTimeoutMs } = parts.options;
    this.#timeout = new SendTimeout(this.#pending, context.options.clock, sendTimeoutMs, () => this.#overdue());
    const attachmentParts = {
      subject: `producer of ${topic}`,
      attach: () => this.#attach(),
      givesUp: (error: unknown) => error instanceof TransportError && !error.retriable,
      failed: (error: unknown) => this.#die(error as Error),
    };
    this.#attachment = new Attachment(attachmentParts, context.options);
  }

  /**
   * With the access mode wait-for-exclusive it resolves once the producer has the topic for itself.
   * @throws TransportError when the broker refuses it for good or stays away too long.
   */
  async open(): Promise<void> {
    for (let inLine = true; inLine;) {
      this.#queued = false;
      inLine = await this.#attachment.open().then(
        () => false,
        (error: unknown) => {
          // The place in line went with the connection: it is taken again, with all the time of a first attempt.
          if (this.#queued && error instanceof TransportError && error.retriable) return true;
          throw error;
        },
      );
    }
    this.#batcher.startAfter(this.#lastSequenceId);
  }

  /** The highest sequence id that the broker has of a producer of this name; -1 for a new one. */
  get lastSequenceId(): number {
    return this.#lastSequenceId;
  }

  /** What the broker knows it by, once it is registered. */
  get name(): string | undefined {
    return this.#name;
  }

  get batchesSent(): number {
    return this.#batcher.sent;
  }

  publish(message: PendingMessage): Promise<MessageId> {
    try {
      if (this.#dead !== undefined) throw this.#dead;
      return this.#batcher.add(message);
    } catch (error) {
      const failure = error as Error;
      this.#parts.done({ count: 1, bytes: message.bytes });
      return Promise.reject(failure);
    }
  }

  /** Sends what is gathered. */
  flush(): void {
    this.#batcher.flush();
  }

  receipt({ sequenceId, messageId }: CommandBody<'SEND_RECEIPT'>): void {
    const { ledgerId, entryId } = messageId ?? NOWHERE;
    if (this.#isOfEarlierChunks(sequenceId)) return;
    // That it had the entry before the broker says at once, ahead of receipts for what it is still storing.
    const entry = ledgerId < 0 ? this.#pending.repeated(sequenceId) : this.#pending.receipt(sequenceId);
    if (entry === undefined || entry === 'late') return;
    if (entry === 'gap') return this.#registerAgain();
    this.#attachment.worked();
    if (!entry.sentBefore) freeFrameMemory(entry.frame);
    this.#stored(entry, { ledgerId, entryId, partition: this.#partition, topic: this.topic });
  }

  #stored(entry: PendingEntry, place: EntryPlace): void {
    const { sequenceId, receipts, chunk } = entry;
    const { ledgerId, entryId } = place;
    // Of a message in chunks the last one tells: the broker does not look for the others.
    const wasRefused = isEndOfMessage(entry) && this.#refused.delete(sequenceId);
    if (wasRefused && ledgerId < 0) return this.#failWhole(entry, overtaken(this.topic));
    if (!Number.isSafeInteger(ledgerId) || !Number.isSafeInteger(entryId)) {
      return this.#failWhole(entry, storedOutOfReach(this.topic));
    }
    const whole = chunk === undefined ? place : chunk.of.stored(chunk.index, place);
    if (whole === undefined) return;
    receipts.stored(whole);
    this.#parts.done(receipts);
  }

  /**
   * Chunks that were given up have the sequence id of those that are published instead. Between two registrations nothing
   * is sent, so what comes then is for the earlier ones; what of it was meant for these is sent once more.
   */
  #isOfEarlierChunks(sequenceId: number): boolean {
    return this.#connection === undefined && this.#pending.withId(sequenceId)[0]?.chunk !== undefined;
  }

  #failWhole({ receipts, chunk }: PendingEntry, error: Error): void {
    if (chunk !== undefined) this.#pending.removeChunks(receipts);
    this.#fail(receipts, error);
  }

  sendFailed({ sequenceId, error, message }: CommandBody<'SEND_ERROR'>): void {
    const failure = serverError(`SEND to ${this.topic}`, error, message);
    if (error === SERVER_ERROR.topicTerminated) return this.#die(failure);
    if (error === SERVER_ERROR.notAllowed || this.#isCorrupt(sequenceId, error)) {
      const refused = this.#pending.refused(sequenceId);
      return refused === undefined ? undefined : this.#giveUp(refused, failure);
    }
    if (error === SERVER_ERROR.quotaExceeded) this.#failAll(failure);
    if (error === SERVER_ERROR.checksum) this.#refused.add(sequenceId);
    // For all others sending again is the way out: over the same connection, which others use as well.
    this.#registerAgain();
  }

  detached(reason: Error, assigned?: BrokerAddress): void {
    this.#connection = undefined;
    this.#place.left(reason, assigned);
    if (this.#closing)
      this.#failAll(connectionLost(`producer of ${this.topic}: the connection was lost while it closed`));
    else this.#attachment.lost();
  }

  migrated(cluster: readonly HostPort[]): void {
    this.#place.migratedTo(cluster);
  }

  /**
   * Sends what is gathered and waits for receipts while there is a broker to give them. What is left fails: whether it
   * was stored is unknown. Calling it twice is allowed.
   */
  async close(): Promise<void> {
    this.#closing = true;
    this.#batcher.flush();
    if (this.#connection !== undefined) await this.#pending.empty();
    this.#batcher.close();
    this.#attachment.close();
    this.#timeout.stop();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#dead ??= alreadyClosed(`publisher of ${this.topic}`);
    this.#failAll(this.#dead);
    if (connection !== undefined) await this.#deregister(connection);
  }

  async #attach(): Promise<void> {
    const connection = await this.#place.connect();
    if (this.#dead !== undefined) throw this.#dead;
    connection.producers.set(this.#id, this);
    try {
      await this.#register(connection);
    } catch (error) {
      connection.producers.delete(this.#id);
      this.#undo(connection, error);
      throw error;
    }
    if (!connection.isOpen || connection.producers.get(this.#id) !== this) {
      throw connectionLost(`producer of ${this.topic}: closed while it was registered`);
    }
    this.#connection = connection;
    for (const entry of this.#pending.takeEnded()) this.#giveUp(entry, endedUnsent(this.topic));
    for (const entry of this.#pending.toArray()) {
      entry.sentBefore = true;
      connection.sendFrame(entry.frame);
    }
  }

  async #register(connection: Connection): Promise<void> {
    const { producerName: asked, initialSubscription, accessMode, properties, schema } = this.#parts.options;
    const body = {
      topic: this.topic,
      producerId: this.#id,
      producerName: this.#name,
      userProvidedProducerName: asked !== undefined,
      metadata: properties,
      schema,
      epoch: this.#epoch,
      producerAccessMode: ACCESS_MODE_NUMBERS[accessMode],
      topicEpoch: this.#topicEpoch,
      initialSubscriptionName: initialSubscription,
    };
    this.#epoch += 1;
    const request = connection.request('PRODUCER', body, this.topic, () => (this.#queued = true));
    const answer = await this.#place.unlessLeft(request);
    if (answer.name !== 'PRODUCER_SUCCESS') throw connectionLost(`PRODUCER of ${this.topic}: answered ${answer.name}`);
    const { producerName, topicEpoch, lastSequenceId = -1 } = answer.body;
    const unusable =
      this.#dead ?? (Number.isSafeInteger(lastSequenceId) ? undefined : nameUsedUp(this.topic, producerName));
    if (unusable !== undefined) {
      await this.#deregister(connection);
      throw unusable;
    }
    if (!this.#registered) this.#lastSequenceId = lastSequenceId;
    this.#registered = true;
    this.#name = producerName;
    this.#topicEpoch = topicEpoch;
    // Read as a view of what came in. A producer without a schema writes by none, whatever the topic has.
    const { schemaVersion: version } = answer.body;
    this.#schemaVersion = schema === undefined || version === undefined ? undefined : Uint8Array.from(version);
  }

  /** Without an answer the broker may have it all the same, and would refuse the next attempt. */
  #undo(connection: Connection, error: unknown): void {
    if (error instanceof TransportError && error.code === 'CALL_TIMED_OUT') void this.#deregister(connection);
  }

  async #deregister(connection: Connection): Promise<void> {
    await connection.request('CLOSE_PRODUCER', { producerId: this.#id }, this.topic).catch(() => undefined);
    if (connection.producers.get(this.#id) === this) connection.producers.delete(this.#id);
  }

  /** Closes it at the broker, which gives the receipts that are under way first, and registers it anew. */
  #registerAgain(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#connection = undefined;
    void connection
      .request('CLOSE_PRODUCER', { producerId: this.#id }, this.topic)
      .catch((error: unknown) =>
        connection.close(connectionLost(`producer of ${this.topic} could not be closed`, error)),
      )
      .then(() => {
        if (connection.producers.get(this.#id) !== this) return; // It was told meanwhile that it is detached.
        connection.producers.delete(this.#id);
        this.detached(connectionLost(`producer of ${this.topic} is registered again`));
      });
  }

  /** Its entry on its way, or its chunks. */
  #send(batch: OutgoingBatch): void {
    let entries: readonly PendingEntry[];
    try {
      entries = this.#chunksOf(batch) ?? [entryOf(batch, this.#byKey, this.#origin(batch))];
    } catch (error) {
      return this.#fail(batch.receipts, error as Error);
    }
    const limit = this.#parts.maxEntryBytes();
    for (const entry of entries) {
      const bytes = sectionBytesOf(entry.frame);
      if (bytes > limit) return this.#tooLarge(batch, bytes, limit);
      entry.sentBefore = entry.sequenceId <= this.#givenUpTo;
      this.#pending.push(entry);
      this.#timeout.watch();
      this.#connection?.sendFrame(entry.frame);
    }
  }

  #chunksOf(batch: OutgoingBatch): readonly PendingEntry[] | undefined {
    const { maxChunkBytes } = this.#parts.options;
    if (maxChunkBytes === undefined) return undefined;
    return chunkEntriesOf(batch, this.#origin(batch), { maxChunkBytes, maxEntryBytes: this.#parts.maxEntryBytes() });
  }

  #origin({ transaction }: OutgoingBatch): EntryOrigin {
    return {
      producerId: this.#id,
      producerName: this.#name ?? '',
      publishTimeMs: this.#context.options.clock.now(),
      compression: this.#parts.compression,
      schemaVersion: this.#schemaVersion,
      transaction,
    };
  }

  /** Beyond the limit the broker closes the connection without a word, for everybody on it. */
  #tooLarge(batch: OutgoingBatch, bytes: number, limit: number): void {
    if (batch.size > 1) return batch.halves().forEach((half) => this.#send(half));
    this.#fail(batch.receipts, messageTooLarge(this.topic, bytes, limit));
  }

  #isCorrupt(sequenceId: number, error: number): boolean {
    if (error !== SERVER_ERROR.checksum) return false;
    return this.#pending.withId(sequenceId).some(({ frame }) => !isIntactSend(frame));
  }

  #overdue(): void {
    const { sendTimeoutMs } = this.#parts.options;
    const text = `SEND to ${this.topic}: no receipt within ${sendTimeoutMs} ms; whether it was stored is unknown`;
    const hasChunks = this.#pending.toArray().some(({ chunk }) => chunk !== undefined);
    this.#failAll(new TransportError('CALL_TIMED_OUT', text, { retriable: true }));
    // Receipts of chunks that are still to come must not be taken for those of another attempt.
    if (hasChunks) this.#registerAgain();
  }

  #fail(receipts: PendingReceipts, error: Error): void {
    receipts.failed(error);
    this.#parts.done(receipts);
  }

  #giveUp({ sequenceId, receipts }: PendingEntry, error: Error): void {
    this.#givenUpTo = Math.max(this.#givenUpTo, sequenceId);
    this.#fail(receipts, error);
  }

  /** In order, what is gathered last. */
  #failAll(error: Error): void {
    this.#refused.clear();
    const gathered = this.#batcher.takeAll();
    let chunks: PendingReceipts | undefined;
    for (const entry of this.#pending.takeAll()) {
      if (entry.receipts === chunks) continue; // Failed with its first chunk.
      if (entry.chunk !== undefined) chunks = entry.receipts;
      this.#giveUp(entry, error);
    }
    for (const { receipts } of gathered) this.#fail(receipts, error);
  }

  #die(error: Error): void {
    this.#dead ??= error;
    this.#attachment.close();
    this.#timeout.stop();
    this.#failAll(error);
  }
}
