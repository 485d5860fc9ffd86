// The seeks of one consumer: one after the other, and known to be under way as long as the broker has not answered,
// because what is settled meanwhile would be settled at the place that the subscription leaves.

export class SeekLine {
  #asked: Promise<unknown> | undefined;
  #line: Promise<unknown> = Promise.resolve();

  /** Whether one waits for its answer. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  /** Runs `seek` after those before it, whatever became of them. */
  async run(seek: () => Promise<void>): Promise<void> {
    const inLine = this.#line.then(seek);
    this.#line = inLine.catch(() => undefined);
    await inLine;
  }

  /** The broker was asked for one. @param moved called with its answer, before anything else. @throws as `answer` rejects. */
  async ask(answer: Promise<unknown>, moved: () => void): Promise<void> {
    this.#asked = answer;
    try {
      await answer;
    } finally {
      this.#asked = undefined;
    }
    moved();
  }

  /** Resolves once none waits for its answer. */
  async answered(): Promise<void> {
    await this.#asked?.catch(() => undefined);
  }
}
