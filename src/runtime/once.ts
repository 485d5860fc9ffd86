// A call whose result several ask for, and which must not be made twice.

/** A call that is made at most once, and its result for whoever asks. */
export class Once<T> {
  readonly #call: () => T;
  #ended: { readonly value: T } | { readonly error: unknown } | undefined;

  constructor(call: () => T) {
    this.#call = call;
  }

  get hasRun(): boolean {
    return this.#ended !== undefined;
  }

  threw(error: unknown): boolean {
    return this.#ended !== undefined && 'error' in this.#ended && this.#ended.error === error;
  }

  /** @throws what the call threw. */
  result(): T {
    this.#ended ??= this.#make();
    if ('error' in this.#ended) throw this.#ended.error;
    return this.#ended.value;
  }

  #make(): { readonly value: T } | { readonly error: unknown } {
    try {
      return { value: this.#call() };
    } catch (error) {
      return { error };
    }
  }
}
