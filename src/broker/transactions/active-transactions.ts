// Which transactions of one coordinator are open, as far as it knows: others may have ended some. Counts them against the
// limit (T-06) and says when none is left.
import { tooManyActive } from './transaction-errors.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';

export class ActiveTransactions {
  readonly #store: TxnMetadataStore;
  readonly #coordinator: number;
  readonly #max: number;
  readonly #known = new Set<string>();
  /** Their headers are being written. */
  #starting = 0;

  /** @param max 0: any number. */
  constructor(store: TxnMetadataStore, coordinator: number, max: number) {
    this.#store = store;
    this.#coordinator = coordinator;
    this.#max = max;
  }

  get isEmpty(): boolean {
    return this.#known.size + this.#starting === 0;
  }

  /** Takes what earlier coordinators of the same number left. */
  async load(): Promise<void> {
    for (const { transaction } of await this.#store.open()) {
      if (transaction.startsWith(`${this.#coordinator}_`)) this.#known.add(transaction);
    }
  }

  /**
   * Runs `start` when there is room for another one, and keeps it.
   * @throws TransportError BROKER_ERROR (retriable) when there is none; what `start` throws.
   */
  async begin(start: () => Promise<string>): Promise<string> {
    if (this.#isFull) await this.forgetEnded();
    if (this.#isFull) throw tooManyActive(this.#coordinator, this.#max);
    this.#starting += 1;
    try {
      const transaction = await start();
      this.#known.add(transaction);
      return transaction;
    } finally {
      this.#starting -= 1;
    }
  }

  ended(transaction: string): void {
    this.#known.delete(transaction);
  }

  /** Those that a sweep or another process ended. */
  async forgetEnded(): Promise<void> {
    const known = [...this.#known];
    if (known.length === 0) return;
    const open = new Set((await this.#store.open()).map(({ transaction }) => transaction));
    for (const transaction of known) if (!open.has(transaction)) this.#known.delete(transaction);
  }

  get #isFull(): boolean {
    return this.#max > 0 && this.#known.size + this.#starting >= this.#max;
  }
}
