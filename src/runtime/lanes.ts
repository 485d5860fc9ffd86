// One lane per key (or partition), where order is asked for: the head owns its lane until it is settled, and what
// comes later on the same key waits behind it. Other keys go on.
import type { Ordering } from '../core/settlement.js';
import type { DeliveryRecord } from './delivery-record.js';

interface Lane {
  readonly waiting: DeliveryRecord[];
}

export class Lanes {
  readonly #ordering: Ordering;
  readonly #lanes = new Map<string, Lane>();
  #longest = 0;

  constructor(ordering: Ordering) {
    this.#ordering = ordering;
  }

  /** Messages waiting in the fullest lane. */
  get longest(): number {
    return this.#longest;
  }

  /** True when the record may run now: it owns its lane, or needs none. Otherwise it waits in the lane. */
  enter(record: DeliveryRecord): boolean {
    const key = this.#keyOf(record);
    if (key === undefined) return true;
    const lane = this.#lanes.get(key);
    if (lane === undefined) {
      this.#lanes.set(key, { waiting: [] });
      return true;
    }
    lane.waiting.push(record);
    this.#longest = Math.max(this.#longest, lane.waiting.length);
    return false;
  }

  /** The head is settled. Gives the record that owns the lane now, undefined when none waits. */
  leave(record: DeliveryRecord): DeliveryRecord | undefined {
    const key = this.#keyOf(record);
    const lane = key === undefined ? undefined : this.#lanes.get(key);
    if (key === undefined || lane === undefined) return undefined;
    const full = lane.waiting.length === this.#longest;
    // Records that were given back while they waited are no longer anybody's head.
    let next = lane.waiting.shift();
    while (next?.state === 'gone') next = lane.waiting.shift();
    if (next === undefined) this.#lanes.delete(key);
    if (full) this.#longest = this.#measure();
    return next;
  }

  /** Takes out everything that waits behind a head. */
  takeWaiting(): DeliveryRecord[] {
    const waiting = [...this.#lanes.values()].flatMap((lane) => lane.waiting.splice(0));
    this.#longest = 0;
    return waiting;
  }

  #measure(): number {
    let longest = 0;
    for (const lane of this.#lanes.values()) longest = Math.max(longest, lane.waiting.length);
    return longest;
  }

  /** A message without a key has no order to keep. */
  #keyOf({ message }: DeliveryRecord): string | undefined {
    if (this.#ordering === 'none') return undefined;
    if (this.#ordering === 'partition') return message.id.topic;
    const { orderingKey, key } = message;
    if (orderingKey !== undefined) return `b${Buffer.from(orderingKey).toString('base64')}`;
    if (key === undefined) return undefined;
    return typeof key === 'string' ? `t${key}` : `b${Buffer.from(key).toString('base64')}`;
  }
}
