// An EffectStore in memory: for tests, on transactions that are made elsewhere. Nothing is forgotten.
import { endsWithin } from '../../core/ends-within.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { Clock } from '../../ports/clock.js';
import type { EffectAnswer, EffectStore, EffectTimes } from '../../ports/effect-store.js';

interface MemoryTransaction {
  commit(): void;
  rollback(): void;
}

export class MemoryEffectStore<Tx extends MemoryTransaction> implements EffectStore<Tx> {
  readonly name = 'memory';
  readonly #begin: () => Tx;
  readonly #recorded = new Map<string, RecordedOutcome>();
  readonly #clock: Clock;
  /** The key of each transaction that is open, and when it ends. */
  readonly #open = new Map<string, Promise<void>>();

  constructor(begin: () => Tx, clock: Clock) {
    this.#begin = begin;
    this.#clock = clock;
  }

  async open(): Promise<void> {}

  async begin(key: string, { waitMs }: EffectTimes): Promise<EffectAnswer<Tx>> {
    const untilMs = this.#clock.now() + waitMs;
    for (let open = this.#open.get(key); open !== undefined; open = this.#open.get(key)) {
      if (!(await endsWithin(this.#clock, open, untilMs - this.#clock.now())))
        return { kind: 'busy', remainingMs: waitMs };
    }
    const outcome = this.#recorded.get(key);
    return outcome === undefined ? this.#begun(key) : { kind: 'recorded', outcome };
  }

  #begun(key: string): EffectAnswer<Tx> {
    let ended!: () => void;
    this.#open.set(key, new Promise((resolve) => (ended = resolve)));
    const tx = this.#begin();
    let isOpen = true;
    const end = (): void => {
      // Another one may have the key by now.
      if (isOpen) this.#open.delete(key);
      isOpen = false;
      ended();
    };
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
