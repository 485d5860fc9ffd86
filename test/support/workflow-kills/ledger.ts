// What was done outside, as lines of a file that are forced to the disk: it outlives every process that did something.
import { AsyncLocalStorage } from 'node:async_hooks';
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Effect } from './kills-plan.js';

type Attempt = Pick<Effect, 'key' | 'attempt'>;

export class Ledger {
  readonly #file: number;
  readonly #current = new AsyncLocalStorage<Attempt>();

  constructor(folder: string) {
    this.#file = openSync(join(folder, 'ledger'), 'a');
  }

  /** What `work` does is done in that attempt. */
  within<T>(attempt: Attempt, work: () => T): T {
    return this.#current.run(attempt, work);
  }

  async did(what: string): Promise<void> {
    await this.write({ ...(this.#current.getStore() ?? { key: '', attempt: 0 }), what });
  }

  async write(effect: Effect): Promise<void> {
    this.#line(effect);
  }

  /** A message that came. */
  async receipt(messageId: string): Promise<void> {
    this.#line({ receipt: messageId });
  }

  close(): void {
    closeSync(this.#file);
  }

  #line(value: unknown): void {
    writeSync(this.#file, `${JSON.stringify(value)}\n`);
    fsyncSync(this.#file);
  }
}

export interface LedgerLines {
  readonly effects: readonly Effect[];
  /** Ids of the messages that came. */
  readonly receipts: readonly string[];
}

export function readLedger(folder: string): LedgerLines {
  const lines = readFileSync(join(folder, 'ledger'), 'utf8').split('\n').slice(0, -1);
  const all = lines.map((line) => JSON.parse(line) as Effect | { readonly receipt: string });
  return {
    effects: all.flatMap((line) => ('key' in line ? line : [])),
    receipts: all.flatMap((line) => ('receipt' in line ? line.receipt : [])),
  };
}
