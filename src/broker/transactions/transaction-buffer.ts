// The messages that transactions published to one topic: nobody sees them before they are committed, nor what came behind
// the first one that is open (T-07), and those that are aborted are none. How a transaction ended its header says; what is not
// known is not shown.
import { toError } from '../../core/errors.js';
import type { Clock, Timer } from '../../ports/clock.js';
import type { SequenceWatch } from '../../ports/metadata-store.js';
import type { Stored } from '../broker-store.js';
import type { TopicLog } from '../topic-log.js';
import { BufferRecords } from './buffer-records.js';
import { OpenTransactions } from './open-transactions.js';
import { bufferClosed, notOpenOnTopic } from './transaction-errors.js';
import { TransactionTurns } from './transaction-turns.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';

export interface BufferedTopic {
  /** Full name, with its partition. */
  readonly name: string;
  readonly log: TopicLog;
  readonly clock: Clock;
  /** Once what was trimmed so far is not stored any more either. */
  written(): Stored;
  /** More entries may be sent than before. */
  readable(): void;
  /** Of a transaction that was aborted: no entries any more, and acknowledged for everybody. */
  dropped(positions: readonly number[]): void;
}

export interface BufferPlaces {
  readonly records: TxnMetadataStore;
  /** What failed and will be tried again at the next occasion. */
  readonly report: (error: Error) => void;
}

/** How often using a topic is a reason to look for ended transactions. */
const LOOK_INTERVAL_MS = 1_000;

export class TransactionBuffer {
  readonly #topic: BufferedTopic;
  readonly #txns: TxnMetadataStore;
  readonly #records: BufferRecords;
  readonly #open: OpenTransactions;
  readonly #report: (error: Error) => void;
  readonly #turns = new TransactionTurns();
  /** Resolves when nobody else works on the entries and records of this topic. */
  readonly #before: Promise<unknown>;
  /** Transactions whose operation is recorded: entries may follow (T-44). */
  readonly #joined = new Set<string>();
  readonly #joining = new Map<string, Promise<void>>();
  /** Positions of the entries of each open transaction; the one whose first entry is first stands first. */
  #entries: Map<string, number[]>;
  #watch: SequenceWatch | undefined;
  #opening: Promise<void> | undefined;
  #again: Timer | undefined;
  #isReady = false;
  #lookedAtMs = -Infinity;

  /** Until it is open, everything behind the first entry that was ever in a transaction is hidden. */
  constructor(topic: BufferedTopic, { records, report }: BufferPlaces, before: Promise<unknown> = Promise.resolve()) {
    this.#topic = topic;
    this.#txns = records;
    this.#records = new BufferRecords(topic, records);
    this.#open = new OpenTransactions({ records, apply: (...end) => this.#apply(...end), report });
    this.#report = report;
    this.#before = before;
    this.#entries = transactionalEntries(topic.log);
    this.#hide();
  }

  /**
   * Rebuilds from the records what is open and what was aborted. More calls than one are allowed, also after one that
   * failed. @throws what the store throws; TransportError BROKER_ERROR, retriable, after `close`.
   */
  open(): Promise<void> {
    this.#opening ??= this.#recover().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** The same, again and again until it is open or closed. */
  start(): void {
    this.open().catch((error: unknown) => {
      if (this.#open.isClosed) return;
      this.#report(toError(error));
      this.#again = this.#topic.clock.setTimer(LOOK_INTERVAL_MS, () => this.start());
    });
  }

  /** Whether entries of the transaction may be appended now. */
  hasJoined(transaction: string): boolean {
    return this.#joined.has(transaction) && !this.#turns.isEnding(transaction);
  }

  /**
   * Comes before the first entry: looks at the header, then leaves an operation by which the topic is told the end (T-44).
   * @throws TransportError TRANSACTION_ENDED; what the store throws: then ask again.
   */
  join(transaction: string): Promise<void> {
    if (this.hasJoined(transaction)) return Promise.resolve();
    const known = this.#joining.get(transaction);
    if (known !== undefined) return known;
    const joining = this.#join(transaction).finally(() => this.#joining.delete(transaction));
    this.#joining.set(transaction, joining);
    return joining;
  }

  /** @throws TransportError TRANSACTION_ENDED unless it has joined: then nothing of it may be appended. */
  checkJoined(transaction: string): void {
    if (!this.hasJoined(transaction)) throw notOpenOnTopic(transaction, this.#topic.name);
  }

  /** An entry of a transaction that has joined. @param stored when it is in the log for certain: no end comes before */
  appended(transaction: string, position: number, stored: Stored): void {
    const positions = this.#entries.get(transaction);
    if (positions !== undefined) positions.push(position);
    else {
      this.#entries.set(transaction, [position]);
      if (this.#entries.size === 1) this.#hide();
    }
    if (stored !== undefined) void this.#turns.record(transaction, stored).catch(() => undefined);
  }

  /** The topic is used: from time to time a reason to see which transactions have ended, if nobody told. */
  used(): void {
    const nowMs = this.#topic.clock.now();
    if (this.#open.size === 0 || nowMs - this.#lookedAtMs < LOOK_INTERVAL_MS) return;
    this.#lookedAtMs = nowMs;
    void this.#open.reconcile();
  }

  /** What lies before the start of the log is not needed any more. */
  trimmed(): void {
    this.#records.trimmed();
  }

  /** Waits for what is under way. What is open stays open. More calls than one are allowed. */
  async close(): Promise<void> {
    this.#again?.cancel();
    this.#watch?.close();
    await this.#open.close();
    await this.#opening?.catch(() => undefined);
    await this.#turns.allRecorded();
    await this.#records.written();
  }

  /** Its topic is deleted: nothing is kept of it, and it is closed. Rejects where something may be left. */
  async remove(): Promise<void> {
    await this.close();
    await this.#before.catch(() => undefined);
    await this.#records.removeAll();
  }

  /** The same order as for acknowledgements (T-41): watch, read records, take over what is open, apply what has ended. */
  async #recover(): Promise<void> {
    await this.#before.catch(() => undefined);
    this.#checkOpen();
    const { name } = this.#topic;
    this.#watch ??= await this.#txns.watchSegment(name, () => void this.#open.reconcile());
    const { watermark, aborted } = await this.#records.read();
    for (const { transaction } of await this.#txns.writesTo(name)) {
      this.#open.add(transaction);
      this.#joined.add(transaction);
    }
    this.#takeOver(watermark, aborted);
    for (const transaction of this.#entries.keys()) this.#open.add(transaction);
    this.#open.recovered();
    await this.#open.reconcile();
    this.#checkOpen();
    this.#isReady = true;
    this.#hide();
  }

  /**
   * Of what is in the log. Where an operation is left the header decides. Where none is, the header may be gone too: what is
   * not aborted is committed up to the watermark, and unknown behind it (T-45).
   */
  #takeOver(watermark: number, aborted: ReadonlySet<string>): void {
    for (const [transaction, positions] of this.#entries) {
      if (aborted.has(transaction)) this.#topic.dropped(positions);
      else if (this.#joined.has(transaction) || (positions.at(-1) ?? -1) > watermark) continue;
      this.#entries.delete(transaction);
    }
  }

  async #join(transaction: string): Promise<void> {
    await this.open();
    if (this.hasJoined(transaction)) return;
    await this.#open.checkOpen(transaction);
    // Before the operation: were it after, an end in between would find it missing, and its event would be lost.
    this.#open.add(transaction);
    await this.#records.appendOp(transaction, () => this.#open.checkOpen(transaction));
    this.#checkOpen();
    this.#joined.add(transaction);
  }

  /** First for readers, then in the records: aborted, watermark, operations, in this order (T-45). */
  #apply(transaction: string, state: FinalState): Promise<void> {
    return this.#turns.end(transaction, async () => {
      this.#checkOpen();
      const positions = this.#entries.get(transaction) ?? [];
      this.#joined.delete(transaction);
      this.#entries.delete(transaction);
      if (state === 'ABORTED' && positions.length > 0) this.#topic.dropped(positions);
      this.#records.ended(transaction, state, positions.at(-1));
      if (this.#isReady) this.#hide();
      await this.#records.write(() => this.#firstHidden);
    });
  }

  get #firstHidden(): number {
    const [first] = this.#entries.values();
    return first?.[0] ?? Infinity;
  }

  /** Nothing behind the first entry of an open transaction may be sent (T-46). */
  #hide(): void {
    if (this.#open.isClosed) return;
    this.#topic.log.hideFrom(this.#firstHidden);
    this.#topic.readable();
  }

  #checkOpen(): void {
    if (this.#open.isClosed) throw bufferClosed();
  }
}

/** Positions by transaction, of all that are still in the log. */
function transactionalEntries(log: TopicLog): Map<string, number[]> {
  const entries = new Map<string, number[]>();
  for (let position = log.first; position < log.appendEnd; position++) {
    const transaction = log.entryAt(position)?.transaction;
    if (transaction === undefined) continue;
    const known = entries.get(transaction);
    if (known === undefined) entries.set(transaction, [position]);
    else known.push(position);
  }
  return entries;
}
