// In which order things happen to one transaction at a participant: its end comes after what is being recorded of it, and
// one end after the other. Nothing is recorded of a transaction that is being ended.

export class TransactionTurns {
  readonly #recording = new Map<string, Set<Promise<void>>>();
  readonly #ends = new Map<string, Promise<void>>();

  isEnding(transaction: string): boolean {
    return this.#ends.has(transaction);
  }

  /** @param recorded under way, of a transaction that is not being ended. */
  async record(transaction: string, recorded: Promise<void>): Promise<void> {
    const all = this.#recording.get(transaction) ?? new Set<Promise<void>>();
    this.#recording.set(transaction, all.add(recorded));
    try {
      await recorded;
    } finally {
      all.delete(recorded);
      if (all.size === 0) this.#recording.delete(transaction);
    }
  }

  end(transaction: string, apply: () => Promise<void>): Promise<void> {
    const before = [...(this.#recording.get(transaction) ?? [])];
    const other = this.#ends.get(transaction);
    if (other !== undefined) before.push(other);
    const end = Promise.allSettled(before).then(apply);
    this.#ends.set(transaction, end);
    const ended = (): void => {
      if (this.#ends.get(transaction) === end) this.#ends.delete(transaction);
    };
    end.then(ended, ended);
    return end;
  }

  /** Resolves when all that is being recorded now is recorded, or failed. */
  async allRecorded(): Promise<void> {
    await Promise.allSettled([...this.#recording.values()].flatMap((all) => [...all]));
  }
}
