// One request at a time for all who ask for the same thing: who asks while it is under way gets its result too. When
// nobody waits for it any more, it is given up.

interface UnderWay<T> {
  readonly result: Promise<T>;
  readonly abandon: AbortController;
  waiting: number;
}

export class SharedRequest<T> {
  readonly #ask: (signal: AbortSignal) => Promise<T>;
  #underWay: UnderWay<T> | undefined;

  /** @param ask one request; `signal` aborts when its result is of no use. */
  constructor(ask: (signal: AbortSignal) => Promise<T>) {
    this.#ask = ask;
  }

  /** @param signal who asks waits no longer: rejects with its reason. */
  async result(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const request = (this.#underWay ??= this.#begin());
    request.waiting += 1;
    let leave = (): void => undefined;
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(signal?.reason as Error);
      signal?.addEventListener('abort', leave, { once: true });
    });
    try {
      return await Promise.race([request.result, left]);
    } finally {
      signal?.removeEventListener('abort', leave);
      request.waiting -= 1;
      if (request.waiting === 0) this.#end(request);
    }
  }

  #begin(): UnderWay<T> {
    const abandon = new AbortController();
    return { result: this.#ask(abandon.signal), abandon, waiting: 0 };
  }

  /** Nobody waits: it is over, or of no use. */
  #end(request: UnderWay<T>): void {
    if (this.#underWay === request) this.#underWay = undefined;
    request.abandon.abort();
  }
}
