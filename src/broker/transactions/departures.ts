// What is being closed or removed, by name: whoever opens something of the same name waits for it, since both work on the
// same records.

export class Departures {
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #report: (error: unknown) => void;

  /** @param report told of what could not be removed. */
  constructor(report: (error: unknown) => void) {
    this.#report = report;
  }

  leave(name: string, end: Promise<void>): void {
    const left = Promise.all([this.#leaving.get(name), end]).then(() => undefined, this.#report);
    this.#leaving.set(name, left);
    void left.then(() => {
      if (this.#leaving.get(name) === left) this.#leaving.delete(name);
    });
  }

  /** Never rejects. */
  async left(name: string): Promise<void> {
    await this.#leaving.get(name);
  }

  async allLeft(): Promise<void> {
    await Promise.all(this.#leaving.values());
  }
}
