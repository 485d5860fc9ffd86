// The transactions that a participant takes for open, and how it learns that one has ended: by its header, whoever told or
// did not tell. An event only says: read the headers of what you believe open, and so does every other occasion (T-38).
import { toError } from '../../core/errors.js';
import { transactionNotOpen } from './pending-ack-errors.js';
import { transactionNotFound } from './transaction-errors.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import { parseTransactionKey } from './txn-paths.js';
import type { FinalState } from './txn-paths.js';
import type { TransactionState } from './txn-records.js';

export interface OpenTransactionsParts {
  readonly records: TxnMetadataStore;
  /** Puts the end into effect, then removes what is recorded of the transaction here. Rejects where it must be called again. */
  readonly apply: (transaction: string, state: FinalState) => Promise<void>;
  /** What failed and will be tried again at the next occasion. */
  readonly report: (error: Error) => void;
}

export class OpenTransactions {
  readonly #parts: OpenTransactionsParts;
  /** Keys of those that are not known to have ended, or whose end is not applied completely. */
  readonly #open = new Set<string>();
  /** Events before count for nothing: the recovery reads all there is. */
  #isRecovered = false;
  #isClosed = false;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(parts: OpenTransactionsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#open.size;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  add(transaction: string): void {
    this.#open.add(transaction);
  }

  delete(transaction: string): void {
    this.#open.delete(transaction);
  }

  clear(): void {
    this.#open.clear();
  }

  /** What was left by others is known: `reconcile` has an effect from now on. */
  recovered(): void {
    this.#isRecovered = true;
  }

  /** Without a header it was aborted: what is recorded of a transaction outlives the header of no other (T-38). */
  async stateOf(transaction: string): Promise<TransactionState> {
    return (await this.#parts.records.readHeader(transaction))?.header.state ?? 'ABORTED';
  }

  /** @throws TransportError TRANSACTION_ENDED unless its header says that it is open (T-42, T-44). */
  async checkOpen(transaction: string): Promise<void> {
    const stored = await this.#parts.records.readHeader(transaction);
    if (stored?.header.state === 'OPEN') return;
    const id = parseTransactionKey(transaction);
    throw stored === undefined ? transactionNotFound(id) : transactionNotOpen(id, stored.header.state);
  }

  /** One run for all calls that come while another one runs. What fails is reported and left for the next call. */
  reconcile(): Promise<void> {
    if (!this.#isRecovered || this.#isClosed) return Promise.resolve();
    if (this.#running === undefined) {
      this.#running = this.#readHeaders().finally(() => (this.#running = undefined));
      return this.#running;
    }
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.reconcile();
    });
    return this.#next;
  }

  /** Whoever takes it out of the open ones applies it (T-40). */
  async ended(transaction: string, state: FinalState): Promise<void> {
    if (this.#isClosed || !this.#open.delete(transaction)) return;
    try {
      await this.#parts.apply(transaction, state);
    } catch (error) {
      // Also where only its records are left: nobody else deletes them, and its header stays as long.
      this.#open.add(transaction);
      this.#parts.report(toError(error));
    }
  }

  /** Waits for what is being applied. More calls than one are allowed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #readHeaders(): Promise<void> {
    await Promise.all([...this.#open].map((transaction) => this.#readHeader(transaction)));
  }

  async #readHeader(transaction: string): Promise<void> {
    try {
      const state = await this.stateOf(transaction);
      if (state !== 'OPEN') await this.ended(transaction, state);
    } catch (error) {
      this.#parts.report(toError(error));
    }
  }
}
