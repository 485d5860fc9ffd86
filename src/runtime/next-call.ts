// A plugin's `next`: once, and only while the hook runs. Later or twice would run a handler, or send, again.
import type { Plugin } from '../ports/plugin.js';

export class NextCall<A extends unknown[], T> {
  readonly #plugin: Plugin;
  readonly #hook: string;
  readonly #next: (...args: A) => T;
  #over: 'called twice' | 'called after its hook had ended' | undefined;

  constructor(plugin: Plugin, hook: string, next: (...args: A) => T) {
    this.#plugin = plugin;
    this.#hook = hook;
    this.#next = next;
  }

  run(...args: A): T {
    if (this.#over !== undefined)
      throw new Error(`plugin "${this.#plugin.name}": next() of ${this.#hook} was ${this.#over}`);
    this.#over = 'called twice';
    return this.#next(...args);
  }

  end(): void {
    this.#over = 'called after its hook had ended';
  }
}
