// The numbers that one coordinator gives its transactions: none twice, whoever else counts on the same record (T-35). They
// are taken from it in blocks, so that a new transaction seldom waits for it; what is left of a block at the end is lost.
import { isVersionConflict } from './transaction-errors.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';

/** One write for so many transactions. */
const BLOCK = 64n;

export class TransactionNumbers {
  readonly #store: TxnMetadataStore;
  readonly #coordinator: number;
  #next = 0n;
  /** The first that is not ours. */
  #end = 0n;
  #taking: Promise<void> | undefined;

  constructor(store: TxnMetadataStore, coordinator: number) {
    this.#store = store;
    this.#coordinator = coordinator;
  }

  async next(): Promise<bigint> {
    while (this.#next >= this.#end) {
      this.#taking ??= this.#take().finally(() => (this.#taking = undefined));
      await this.#taking;
    }
    return this.#next++;
  }

  /** A write whose answer was lost costs a block, never a number given twice: what follows is read again. */
  async #take(): Promise<void> {
    for (;;) {
      const { last, version } = await this.#store.readCounter(this.#coordinator);
      try {
        await this.#store.writeCounter(this.#coordinator, last + BLOCK, version);
      } catch (error) {
        if (isVersionConflict(error)) continue;
        throw error;
      }
      this.#next = last + 1n;
      this.#end = last + 1n + BLOCK;
      return;
    }
  }
}
