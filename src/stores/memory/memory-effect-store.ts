// An EffectStore in memory: for tests, on transactions that are made elsewhere. Nothing is forgotten.
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { EffectAnswer, EffectStore } from '../../ports/effect-store.js';

interface MemoryTransaction {
  commit(): void;
  rollback(): void;
}

/** To be asked again after it where another run has the key. */
const BUSY_MS = 100;

export class MemoryEffectStore<Tx extends MemoryTransaction> implements EffectStore<Tx> {
  readonly name = 'memory';
  readonly #begin: () => Tx;
  readonly #recorded = new Map<string, RecordedOutcome>();
  readonly #open = new Set<string>();

  constructor(begin: () => Tx) {
    this.#begin = begin;
  }

  async open(): Promise<void> {}

  async begin(key: string): Promise<EffectAnswer<Tx>> {
    const outcome = this.#recorded.get(key);
    if (outcome !== undefined) return { kind: 'recorded', outcome };
    if (this.#open.has(key)) return { kind: 'busy', remainingMs: BUSY_MS };
    this.#open.add(key);
    const tx = this.#begin();
    const end = (): void => void this.#open.delete(key);
    return {
      kind: 'begun',
      transaction: {
        tx,
        commit: async (recorded) => {
          this.#recorded.set(key, recorded);
          tx.commit();
          end();
        },
        rollback: async () => {
          tx.rollback();
          end();
        },
      },
    };
  }
}
