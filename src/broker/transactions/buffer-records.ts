// What is recorded of the messages that transactions published to one topic, so that the next broker knows what became of
// them when their headers are gone: which ones were aborted, and up to where every outcome is in effect (T-45, T-46).
import type { Stored } from '../broker-store.js';
import type { TopicLog } from '../topic-log.js';
import { allDone } from './transaction-ending.js';
import { isEnded } from './transaction-errors.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';
import type { EntryPlace } from './txn-records.js';

export interface RecordedTopic {
  readonly name: string;
  readonly log: TopicLog;
  /** Once what was trimmed so far is not stored any more either. */
  written(): Stored;
}

/** A transaction that has ended, and whose operations are still recorded. */
interface Ended {
  readonly state: FinalState;
  /** The position of its last entry; undefined: it has none. */
  readonly last: number | undefined;
}

export class BufferRecords {
  readonly #topic: RecordedTopic;
  readonly #records: TxnMetadataStore;
  readonly #ended = new Map<string, Ended>();
  /** Those that are recorded as aborted, and where their last entry is. */
  readonly #aborted = new Map<string, EntryPlace>();
  #watermark = -1;
  /** One write after the other: the order counts. */
  #writing: Promise<void> = Promise.resolve();

  constructor(topic: RecordedTopic, records: TxnMetadataStore) {
    this.#topic = topic;
    this.#records = records;
  }

  /** What the last broker left. The watermark as a position, -1 before the first. */
  async read(): Promise<{ readonly watermark: number; readonly aborted: ReadonlySet<string> }> {
    const { name, log } = this.#topic;
    const place = await this.#records.readWatermark(name);
    if (place !== undefined) this.#watermark = log.lastPositionUpTo(place.ledgerId, place.entryId);
    for (const { transaction, ledgerId, entryId } of await this.#records.abortedOn(name))
      this.#aborted.set(transaction, { ledgerId, entryId });
    const aborted = new Set(this.#aborted.keys());
    this.trimmed();
    return { watermark: this.#watermark, aborted };
  }

  /**
   * One for each transaction that writes here: where its entries are says the log.
   * @param check whether it is still open: one that ended meanwhile was told to nobody here
   */
  async appendOp(transaction: string, check: () => Promise<void>): Promise<void> {
    const op = { kind: 'WRITE', segment: this.#topic.name, ledgerId: 0, entryId: 0 } as const;
    const path = await this.#records.appendOp(transaction, op);
    try {
      await check();
    } catch (error) {
      if (isEnded(error)) await this.#records.deleteOp(path);
      throw error;
    }
  }

  /**
   * Its end is in effect. Told again it stays what it was: by then its header, without which it looks aborted, may be gone.
   * @param last the position of its last entry
   */
  ended(transaction: string, state: FinalState, last: number | undefined): void {
    const known = this.#ended.get(transaction);
    this.#ended.set(transaction, { state: known?.state ?? state, last: last ?? known?.last });
  }

  /** What the one before could not record: entries that were dropped are not in the log any more. */
  takeOver(before: BufferRecords): void {
    for (const [transaction, ended] of before.#ended) this.#ended.set(transaction, ended);
  }

  /**
   * Records what has ended. Operations, and with them the header, stay until nobody needs them to know the outcome.
   * @param firstHidden says which is the first entry now whose transaction is open. Rejects where it must be called again.
   */
  write(firstHidden: () => number): Promise<void> {
    const writing = this.#writing.then(() => this.#write(firstHidden));
    this.#writing = writing.catch(() => undefined);
    return writing;
  }

  /** Resolves when nothing is being written. */
  written(): Promise<void> {
    return this.#writing;
  }

  /** Of entries that are gone nobody asks whether they were aborted. What cannot be deleted goes with the next one. */
  trimmed(): void {
    if (this.#aborted.size === 0) return;
    const { name, log } = this.#topic;
    // By its ledger: where the store refused the entry itself, earlier ones may be kept.
    const gone = [...this.#aborted].filter(([, { ledgerId }]) => log.ledgerCount === 0 || ledgerId < log.firstLedgerId);
    for (const [transaction, place] of gone) {
      this.#aborted.delete(transaction);
      // Not earlier: were the entries still stored, the next broker would take them for committed.
      this.#writing = this.#writing
        .then(() => this.#topic.written())
        .then(() => this.#records.deleteAborted(name, transaction))
        .catch(() => void this.#aborted.set(transaction, place));
    }
  }

  /** The topic is deleted. Rejects where something may be left. */
  async removeAll(): Promise<void> {
    await removeRecordsOf(this.#topic.name, this.#records);
  }

  async #write(firstHidden: () => number): Promise<void> {
    // What ends meanwhile has its own turn: none of its operations may go before it is recorded as aborted.
    const ended = [...this.#ended];
    for (const [transaction, { state, last }] of ended) {
      if (state !== 'ABORTED' || last === undefined) continue;
      const place = placeOf(this.#topic.log, last);
      if (place !== undefined) await this.#writeAborted(transaction, place);
      // It was trimmed: as long as it is stored the next broker would take it for committed.
      else await this.#topic.written();
    }
    await this.#moveWatermark(firstHidden());
    for (const [transaction, { state, last }] of ended) {
      // Without its header, what is committed is told from what is unknown by the watermark alone.
      if (state === 'COMMITTED' && (last ?? -1) > this.#watermark) continue;
      await this.#deleteOps(transaction);
      this.#ended.delete(transaction);
    }
    // What was trimmed before it was recorded.
    this.trimmed();
  }

  async #writeAborted(transaction: string, place: EntryPlace): Promise<void> {
    if (this.#aborted.has(transaction)) return;
    await this.#records.writeAborted(this.#topic.name, { transaction, ...place });
    this.#aborted.set(transaction, place);
  }

  async #moveWatermark(firstHidden: number): Promise<void> {
    const { name, log } = this.#topic;
    const reached = Math.min(firstHidden, log.end) - 1;
    if (reached <= this.#watermark) return;
    const place = placeOf(log, reached);
    // It was trimmed: there is nothing up to there that anybody could ask about.
    if (place !== undefined) await this.#records.writeWatermark(name, place);
    this.#watermark = reached;
  }

  async #deleteOps(transaction: string): Promise<void> {
    const ops = await this.#records.opsOf(transaction);
    const own = ops.filter(({ op }) => op.kind === 'WRITE' && op.segment === this.#topic.name);
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }
}

/** Undefined when the entry is not kept any more. */
function placeOf(log: TopicLog, position: number): EntryPlace | undefined {
  const ledger = log.ledgerOf(position);
  return ledger && { ledgerId: ledger.id, entryId: position - ledger.first };
}

/** Of a topic that is deleted, by its full name. Rejects where something may be left. */
export async function removeRecordsOf(topic: string, records: TxnMetadataStore): Promise<void> {
  const ops = await records.writesTo(topic);
  const aborted = await records.abortedOn(topic);
  await allDone([
    ...ops.map(({ path }) => records.deleteOp(path)),
    ...aborted.map(({ transaction }) => records.deleteAborted(topic, transaction)),
    records.deleteWatermark(topic),
  ]);
}
