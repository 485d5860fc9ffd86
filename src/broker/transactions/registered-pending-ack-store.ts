// Pending acknowledgements that are kept somewhere else than in the metadata store: one operation there says which transactions
// take part, so that the end of each reaches this subscription as it reaches those of segments, and its header stays for as
// long as it is needed.
import type { SequenceWatch } from '../../ports/metadata-store.js';
import { OpenTransactions } from './open-transactions.js';
import type { AckedEntry, PendingAckOwner, PendingAckStore, PendingAckTarget } from './pending-ack-store.js';
import { allDone } from './transaction-ending.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';

export class RegisteredPendingAckStore implements PendingAckStore {
  /** Where the positions are. */
  readonly #kept: PendingAckStore;
  readonly #records: TxnMetadataStore;
  readonly #owner: PendingAckOwner;
  readonly #open: OpenTransactions;
  /** Paths of operations, by transaction. */
  readonly #registered = new Map<string, Promise<string>>();
  #target: PendingAckTarget | undefined;
  #watch: SequenceWatch | undefined;

  /** @param report what failed and will be tried again at the next occasion. */
  constructor(
    kept: PendingAckStore,
    records: TxnMetadataStore,
    owner: PendingAckOwner,
    report: (error: Error) => void,
  ) {
    this.#kept = kept;
    this.#records = records;
    this.#owner = owner;
    this.#open = new OpenTransactions({ records, apply: (...end) => this.#apply(...end), report });
  }

  /** What has ended meanwhile is applied before anything is sent (T-41): what it frees comes in its place. */
  async replay(target: PendingAckTarget): Promise<void> {
    this.#target = target;
    const { topic, subscription } = this.#owner;
    this.#watch = await this.#records.watchSubscription(topic, subscription, () => void this.reconcile());
    try {
      for (const { transaction, path } of await this.#records.acksOf(topic, subscription)) {
        this.#open.add(transaction);
        this.#registered.set(transaction, Promise.resolve(path));
      }
      await this.#kept.replay(target);
    } catch (error) {
      this.#watch.close();
      throw error;
    }
    if (this.#open.isClosed) this.#watch.close();
    this.#open.recovered();
    await this.#open.reconcile();
  }

  async appendIndividual(transaction: string, entries: readonly AckedEntry[]): Promise<void> {
    await this.#register(transaction);
    await this.#kept.appendIndividual(transaction, entries);
  }

  async appendCumulative(transaction: string, entry: AckedEntry): Promise<void> {
    await this.#register(transaction);
    await this.#kept.appendCumulative(transaction, entry);
  }

  appendCommitMark(transaction: string): Promise<void> {
    return this.#kept.appendCommitMark(transaction);
  }

  appendAbortMark(transaction: string): Promise<void> {
    return this.#kept.appendAbortMark(transaction);
  }

  async applied(transaction: string): Promise<void> {
    await this.#kept.applied(transaction);
    await this.#deleteOps(transaction);
    this.#open.delete(transaction);
  }

  reconcile(): Promise<void> {
    return this.#open.reconcile();
  }

  async removeAll(): Promise<void> {
    this.#open.clear();
    await this.#kept.removeAll();
    const { topic, subscription } = this.#owner;
    const own = await this.#records.acksOf(topic, subscription);
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
  }

  async close(): Promise<void> {
    this.#watch?.close();
    await this.#open.close();
    await this.#kept.close();
  }

  /**
   * Once for each transaction, before its first acknowledgement is kept.
   * @throws TransportError TRANSACTION_ENDED unless its header says that it is open.
   */
  async #register(transaction: string): Promise<void> {
    // First of all: what fails here stays pending until the transaction ends.
    this.#open.add(transaction);
    await this.#open.checkOpen(transaction);
    const known = this.#registered.get(transaction);
    if (known !== undefined) return void (await known);
    const { topic: segment, subscription } = this.#owner;
    const op = { kind: 'ACK', segment, subscription, ledgerId: 0, entryId: 0, cumulative: null, batch: null } as const;
    const path = this.#records.appendOp(transaction, op);
    this.#registered.set(transaction, path);
    try {
      await path;
    } catch (error) {
      this.#registered.delete(transaction);
      throw error;
    }
    // Ended in between, it was not told here: the next look finds that out.
    void this.#open.reconcile();
  }

  /** The mark first: what others acknowledge afterwards must not be taken for a conflict with it after a restart. */
  async #apply(transaction: string, state: FinalState): Promise<void> {
    // Nothing is kept of one that is not registered, and nobody would look for what is kept now.
    const isKept = this.#registered.has(transaction);
    if (state === 'COMMITTED') {
      if (isKept) await this.#kept.appendCommitMark(transaction);
      await this.#target?.committed(transaction);
    } else {
      if (isKept) await this.#kept.appendAbortMark(transaction);
      await this.#target?.aborted(transaction);
    }
    if (isKept) await this.#kept.applied(transaction);
    await this.#deleteOps(transaction);
  }

  async #deleteOps(transaction: string): Promise<void> {
    const { topic, subscription } = this.#owner;
    const ops = await this.#records.opsOf(transaction);
    const own = ops.filter(({ op }) => op.kind === 'ACK' && op.segment === topic && op.subscription === subscription);
    await allDone(own.map(({ path }) => this.#records.deleteOp(path)));
    this.#registered.delete(transaction);
  }
}
