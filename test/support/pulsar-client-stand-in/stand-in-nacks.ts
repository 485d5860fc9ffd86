// The official client's tracker of negative acknowledgements: one delay, one timer, whole entries.
import type { Clock, Timer } from 'pulsework';
import type { StandInMessageId } from './stand-in-messages.js';

const FLOOR_MS = 100;

export class StandInNacks {
  readonly #delayMs: number;
  readonly #starving: boolean;
  readonly #redeliver: (ids: readonly StandInMessageId[]) => void;
  readonly #due = new Map<string, { readonly atMs: number; readonly id: StandInMessageId }>();
  readonly #clock: Clock;
  #timer: Timer | undefined;

  constructor(delayMs: number, starving: boolean, redeliver: (ids: readonly StandInMessageId[]) => void, clock: Clock) {
    this.#clock = clock;
    this.#delayMs = Math.max(delayMs, FLOOR_MS);
    this.#starving = starving;
    this.#redeliver = redeliver;
  }

  add(id: StandInMessageId): void {
    const { known } = id;
    if (typeof known === 'string') return;
    this.#due.set(`${known.ledgerId}:${known.entryId}`, { atMs: this.#clock.now() + this.#delayMs, id });
    if (this.#starving) this.#timer?.cancel();
    else if (this.#timer !== undefined) return;
    this.#arm();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#due.clear();
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(Math.floor(this.#delayMs / 3), () => this.#tick());
  }

  #tick(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const ready = [...this.#due].filter(([, { atMs }]) => atMs <= now);
    for (const [key] of ready) this.#due.delete(key);
    if (ready.length > 0) this.#redeliver(ready.map(([, { id }]) => id));
    if (this.#due.size > 0) this.#arm();
  }
}
