// Deliveries that wait here with their payload, outside any slot: to run again in place, to be settled again, or for a copy.
import type { Clock } from '../ports/clock.js';
import type { DeliveryRecord, RecordState } from './delivery-record.js';

export type KeptState = Extract<RecordState, 'kept' | 'unsettled' | 'returning'>;

export class KeptDeliveries {
  readonly #clock: Clock;
  readonly #onDue: (record: DeliveryRecord) => void;
  readonly #records = new Set<DeliveryRecord>();
  #bytes = 0;

  /** @param onDue gets each record once, when it is due; it is no longer kept then. */
  constructor(clock: Clock, onDue: (record: DeliveryRecord) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Payload bytes of all of them. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether any of them has a settlement that may still be made; one refused for good is not waited for. */
  get unsettled(): boolean {
    for (const { pending } of this.#records) if (pending?.refused === false) return true;
    return false;
  }

  /** Those that were given up and wait for a person. */
  get givenUp(): readonly DeliveryRecord[] {
    return [...this.#records].filter(({ givenUp }) => givenUp !== undefined);
  }

  /** Keeps `record` until its `dueMs`. */
  add(record: DeliveryRecord, state: KeptState): void {
    record.state = state;
    this.#records.add(record);
    this.#bytes += record.payloadBytes;
    // One that waits for a person is never due.
    if (record.dueMs === Infinity) return;
    record.timer = this.#clock.setTimer(Math.max(0, record.dueMs - this.#clock.now()), () => {
      this.#remove(record);
      this.#onDue(record);
    });
  }

  /** Takes out those that match. */
  take(matches: (record: DeliveryRecord) => boolean): DeliveryRecord[] {
    const taken = [...this.#records].filter(matches);
    for (const record of taken) this.#remove(record);
    return taken;
  }

  #remove(record: DeliveryRecord): void {
    record.timer?.cancel();
    record.timer = undefined;
    if (this.#records.delete(record)) this.#bytes -= record.payloadBytes;
  }
}
