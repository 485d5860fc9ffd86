// A process that ends at one of its calls to a store: that call and all later ones have no answer, and of the later ones
// nothing happens. Whether that one call happened is to be chosen.
import type { MetadataStore } from '../../../../src/ports/metadata-store.js';
import type { PendingAckLog } from '../../../../src/broker/transactions/pending-ack-log.js';

export interface Crash {
  /** At which call, from 1. */
  readonly at: number;
  /** The call is made, and only its answer is lost. */
  readonly after: boolean;
}

const NEVER = new Promise<never>(() => undefined);

export class CrashPoint {
  readonly #crash: Crash;
  #calls = 0;

  /** @param crash none at all for a process that goes on */
  constructor(crash: Crash = { at: Infinity, after: false }) {
    this.#crash = crash;
  }

  get hasCrashed(): boolean {
    return this.#calls >= this.#crash.at;
  }

  call<T>(make: () => Promise<T>): Promise<T> {
    this.#calls += 1;
    if (!this.hasCrashed) return make();
    if (this.#calls === this.#crash.at && this.#crash.after) void make();
    return NEVER;
  }

  /** Its calls are made through `this`; a watch tells nothing to a process that has ended. @param told false: nothing at all */
  metadata(store: MetadataStore, told: boolean): MetadataStore {
    return {
      ...Object.fromEntries(CALLS.map((name) => [name, this.#callTo(store, name)])),
      name: store.name,
      watch: (prefix, onNewer) =>
        this.call(() =>
          store.watch(prefix, () => {
            if (told && !this.hasCrashed) onNewer();
          }),
        ),
    } as MetadataStore;
  }

  log(log: PendingAckLog): PendingAckLog {
    return {
      append: (record) => this.call(() => log.append(record)),
      read: () => this.call(() => log.read()),
      forget: (transaction) => this.call(() => log.forget(transaction)),
      close: () => this.call(() => log.close()),
    };
  }

  #callTo(store: MetadataStore, name: (typeof CALLS)[number]): (...args: never[]) => Promise<unknown> {
    const call = store[name].bind(store) as (...args: never[]) => Promise<unknown>;
    return (...args) => this.call(() => call(...args));
  }
}

const CALLS = ['open', 'get', 'put', 'delete', 'append', 'children', 'scan', 'scanIndex', 'close'] as const;
