// One message after the other to one topic: what fails in passing is tried again before anything later is sent, so that
// nothing overtakes and no broker takes the repeat for old.
import { exponentialBackoff } from '../../core/backoff.js';
import { toError } from '../../core/errors.js';
import { seconds } from '../../core/options.js';
import type { Clock, Timer } from '../../ports/clock.js';
import type { ClaimedRow } from '../../ports/outbox-store.js';
import { RowRefused } from './outbox-sender.js';

/** Short at first: most failures are a broker that moves a topic. Long in the end: not to flood one that is down. */
const backoff = exponentialBackoff({ minMs: 100, maxMs: seconds(30), jitter: 'equal' });

export interface OutboxLaneParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly send: (row: ClaimedRow) => Promise<void>;
  readonly published: (row: ClaimedRow) => void;
  /** The lane stands still until `drop` or `stop`: nothing of its key may be sent before the refusal is written down. */
  readonly refused: (row: ClaimedRow, reason: string) => void;
  readonly failed: (row: ClaimedRow, error: Error, againInMs: number) => void;
}

export class OutboxLane {
  readonly #parts: OutboxLaneParts;
  #rows: ClaimedRow[] = [];
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #goOn: () => void = () => undefined;
  #stopped = false;

  constructor(parts: OutboxLaneParts) {
    this.#parts = parts;
  }

  /** In the order of their numbers. */
  add(row: ClaimedRow): void {
    this.#rows.push(row);
    if (!this.#stopped) this.#running ??= this.#run();
  }

  /** The refused row is written down; those behind it have lost their numbers. @returns how many rows went */
  drop(refused: ClaimedRow): number {
    const before = this.#rows.length;
    const { orderedBy } = refused;
    this.#rows = this.#rows.filter(
      (row) => row !== refused && (orderedBy === undefined || row.orderedBy !== orderedBy),
    );
    this.#goOn();
    return before - this.#rows.length;
  }

  /** Sends nothing more. Resolves when what is on its way has its answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#goOn();
    await this.#running;
  }

  async #run(): Promise<void> {
    let failures = 0;
    for (let row = this.#rows[0]; row !== undefined && !this.#stopped; row = this.#rows[0]) {
      try {
        await this.#parts.send(row);
        failures = 0;
        this.#rows.shift();
        this.#parts.published(row);
      } catch (error) {
        await this.#standStill(row, toError(error), failures++);
      }
    }
    this.#running = undefined;
  }

  async #standStill(row: ClaimedRow, error: Error, failures: number): Promise<void> {
    if (this.#stopped) return;
    const { clock, random, failed, refused } = this.#parts;
    const over = new Promise<void>((goOn) => (this.#goOn = goOn));
    if (error instanceof RowRefused) refused(row, error.message);
    else {
      const delayMs = backoff(failures, random);
      failed(row, error, delayMs);
      this.#timer = clock.setTimer(delayMs, this.#goOn);
    }
    await over;
  }
}
