// Deliveries that may run now and wait for a slot, in the order they became ready. With the option `fairness` each first
// waits until its key has room.
import type { DeliveryRecord } from './delivery-record.js';
import type { FairnessParts } from './fairness.js';
import { Fairness } from './fairness.js';

export class ReadyDeliveries {
  #records: DeliveryRecord[] = [];
  readonly #fairness: Fairness | undefined;

  constructor(parts: Omit<FairnessParts, 'onTurn'>) {
    const onTurn = (record: DeliveryRecord): void => void this.#records.push(record);
    this.#fairness = parts.plan.fairness && new Fairness({ ...parts, onTurn });
  }

  /** Those that wait for a slot only. */
  get size(): number {
    return this.#records.length;
  }

  /** Those that wait because of their key's share. */
  get throttled(): number {
    return this.#fairness?.waiting ?? 0;
  }

  /** Payload bytes of those. */
  get throttledBytes(): number {
    return this.#fairness?.waitingBytes ?? 0;
  }

  /** A key with as many waiting for their share as may; undefined when there is none. */
  get fullKey(): string | undefined {
    return this.#fairness?.fullKey;
  }

  add(record: DeliveryRecord): void {
    if (this.#fairness === undefined) this.#records.push(record);
    else this.#fairness.enter(record);
  }

  /** Takes the next one for a run, of whose end `ended` must tell. */
  take(): DeliveryRecord | undefined {
    return this.#started(this.#records.shift());
  }

  /** Takes the first that matches, before its turn too. */
  takeFirst(matches: (record: DeliveryRecord) => boolean): DeliveryRecord | undefined {
    const at = this.#records.findIndex(matches);
    return this.#started(at < 0 ? this.#fairness?.takeWaiting(matches) : this.#records.splice(at, 1)[0]);
  }

  /** The run of a record that was taken has ended. */
  ended(record: DeliveryRecord): void {
    this.#fairness?.ended(record);
  }

  /** Takes out those that match, for something else than a run. */
  remove(matches: (record: DeliveryRecord) => boolean): readonly DeliveryRecord[] {
    const throttled = this.#fairness?.removeWaiting(matches) ?? [];
    const removed = this.#records.filter(matches);
    this.#records = this.#records.filter((record) => !matches(record));
    for (const record of removed) this.#fairness?.withdrawn(record);
    return [...removed, ...throttled];
  }

  #started(record: DeliveryRecord | undefined): DeliveryRecord | undefined {
    if (record !== undefined) this.#fairness?.started(record);
    return record;
  }
}
