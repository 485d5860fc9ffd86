// What a topic has to do with transactions. A topic that has nothing to do with them costs nothing: its buffer is opened by the
// first transaction that publishes to it, and after that with each loading of the topic.
import { toError } from '../../core/errors.js';
import { noTransactions, notSupported } from '../broker-errors.js';
import type { Stored } from '../broker-store.js';
import { Departures } from './departures.js';
import type { BufferedTopic, BufferPlaces } from './transaction-buffer.js';
import { TransactionBuffer } from './transaction-buffer.js';
import { notOpenOnTopic } from './transaction-errors.js';

export class TransactionBuffers {
  readonly mayHold: (topic: string) => boolean;
  readonly #places: BufferPlaces;
  /** Of one topic one buffer at a time is open, and what was left by a deleted one of the same name goes before. */
  readonly #departures: Departures;

  /** @param mayHold whether something of a transaction was left for a topic by an earlier broker. */
  constructor(places: BufferPlaces, mayHold: (topic: string) => boolean) {
    this.#places = places;
    this.mayHold = mayHold;
    this.#departures = new Departures((error) => places.report(toError(error)));
  }

  open(topic: BufferedTopic): TransactionBuffer {
    return new TransactionBuffer(topic, this.#places, this.#departures.left(topic.name));
  }

  /** @param end closes it or removes what is kept. */
  leave(topic: string, end: Promise<void>): void {
    this.#departures.leave(topic, end);
  }

  /** Waits for those that were closed. */
  closed(): Promise<void> {
    return this.#departures.allLeft();
  }
}

export class TopicTransactions {
  readonly #topic: BufferedTopic;
  readonly #isVolatile: boolean;
  readonly #buffers: TransactionBuffers | undefined;
  #buffer: TransactionBuffer | undefined;

  /** @param buffers undefined: the broker has no transactions. */
  constructor(topic: BufferedTopic, isVolatile: boolean, buffers: TransactionBuffers | undefined) {
    this.#topic = topic;
    this.#isVolatile = isVolatile;
    this.#buffers = buffers;
  }

  /** Whether something is recorded for the topic by an earlier broker, its entries or not. */
  get mayBeLeft(): boolean {
    return this.#buffers?.mayHold(this.#topic.name) === true;
  }

  hasJoined(transaction: string): boolean {
    return this.#buffer?.hasJoined(transaction) === true;
  }

  /**
   * Comes before the first message of a transaction.
   * @throws TransportError TRANSACTION_ENDED; NOT_SUPPORTED where nothing is kept; NOT_ALLOWED where there are no transactions.
   */
  async join(transaction: string): Promise<void> {
    const { name } = this.#topic;
    if (this.#isVolatile) throw notSupported(`"${name}" is not persistent: nothing on it can wait for a transaction`);
    if (this.#buffers === undefined) throw noTransactions();
    this.#buffer ??= this.#buffers.open(this.#topic);
    await this.#buffer.join(transaction);
  }

  /** @throws TransportError TRANSACTION_ENDED */
  checkJoined(transaction: string): void {
    if (this.#buffer === undefined) throw notOpenOnTopic(transaction, this.#topic.name);
    this.#buffer.checkJoined(transaction);
  }

  appended(transaction: string, position: number, stored: Stored): void {
    this.#buffer?.appended(transaction, position, stored);
  }

  /** From time to time a reason to look for transactions that have ended, if nobody told. */
  used(): void {
    this.#buffer?.used();
  }

  trimmed(): void {
    this.#buffer?.trimmed();
  }

  /** The topic was unloaded and is loaded again: what is open, and what was aborted, the records say. */
  unload(): void {
    const before = this.#buffer;
    if (before !== undefined) this.load(before);
  }

  /** The topic came with entries of transactions, or something of one is recorded for it. */
  load(before?: TransactionBuffer): void {
    if (this.#buffers === undefined || this.#isVolatile) return;
    if (before !== undefined) this.#buffers.leave(this.#topic.name, before.close());
    this.#buffer = this.#buffers.open(this.#topic);
    this.#buffer.start();
  }

  /** The topic is deleted. */
  remove(): void {
    const buffer = this.#buffer;
    this.#buffer = undefined;
    if (buffer !== undefined) this.#buffers?.leave(this.#topic.name, buffer.remove());
  }

  async close(): Promise<void> {
    await this.#buffer?.close();
  }
}
