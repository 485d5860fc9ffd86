// One lane per key (or partition), where order is asked for: the head owns its lane until it is settled, and what
// comes later on the same key waits behind it. Other keys go on.
import { orderKeyOf } from '../core/message-key.js';
import type { Ordering } from '../core/subscription-spec.js';
import type { DeliveryRecord } from './delivery-record.js';

export class Lanes {
  readonly #ordering: Ordering;
  readonly #maxWaiting: number;
  /** Who waits behind the head of each lane; the head itself is not among them. */
  readonly #lanes = new Map<string, DeliveryRecord[]>();
  #fullLanes = 0;
  #waitingBytes = 0;

  /** @param maxWaiting messages behind a head at which its lane is full. */
  constructor(ordering: Ordering, maxWaiting: number) {
    this.#ordering = ordering;
    this.#maxWaiting = maxWaiting;
  }

  /** Lanes with messages waiting behind their head. */
  get blocked(): number {
    let blocked = 0;
    for (const { length } of this.#lanes.values()) if (length > 0) blocked++;
    return blocked;
  }

  /** Whether a lane is a partition; else it is a key. */
  get byPartition(): boolean {
    return this.#ordering === 'partition';
  }

  /** Whose lane is full, undefined when none is. */
  get fullKey(): string | undefined {
    if (this.#fullLanes === 0) return undefined;
    for (const [key, { length }] of this.#lanes) if (length >= this.#maxWaiting) return key;
    return undefined;
  }

  waitingBehind(head: DeliveryRecord): number {
    const key = this.keyOf(head);
    return key === undefined ? 0 : (this.#lanes.get(key)?.length ?? 0);
  }

  /** Payload bytes of everything that waits behind a head. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** True when the record may run now: it owns its lane, or needs none. Otherwise it waits in the lane. */
  enter(record: DeliveryRecord): boolean {
    const key = this.keyOf(record);
    if (key === undefined) return true;
    const waiting = this.#lanes.get(key);
    if (waiting === undefined) {
      this.#lanes.set(key, []);
      return true;
    }
    waiting.push(record);
    this.#waitingBytes += record.payloadBytes;
    if (waiting.length === this.#maxWaiting) this.#fullLanes++;
    return false;
  }

  /** The head is settled. Gives the record that owns the lane now, undefined when none waits. */
  leave(record: DeliveryRecord): DeliveryRecord | undefined {
    const key = this.keyOf(record);
    const waiting = key === undefined ? undefined : this.#lanes.get(key);
    if (key === undefined || waiting === undefined) return undefined;
    if (waiting.length === this.#maxWaiting) this.#fullLanes--;
    const next = waiting.shift();
    if (next === undefined) this.#lanes.delete(key);
    else this.#waitingBytes -= next.payloadBytes;
    return next;
  }

  /** Takes out what waits behind this head and came from its topic; what another topic sent waits on. */
  takeBehind(head: DeliveryRecord): readonly DeliveryRecord[] {
    const { topic } = head.message.id;
    const key = this.keyOf(head);
    return key === undefined ? [] : this.#takeWaiting(key, ({ message }) => message.id.topic === topic);
  }

  /** Takes out what waits behind a head and matches. */
  removeWaiting(matches: (record: DeliveryRecord) => boolean): readonly DeliveryRecord[] {
    return [...this.#lanes.keys()].flatMap((key) => this.#takeWaiting(key, matches));
  }

  #takeWaiting(key: string, matches: (record: DeliveryRecord) => boolean): readonly DeliveryRecord[] {
    const waiting = this.#lanes.get(key) ?? [];
    const taken = waiting.filter(matches);
    if (taken.length === 0) return taken;
    const kept = waiting.filter((record) => !matches(record));
    if (waiting.length >= this.#maxWaiting && kept.length < this.#maxWaiting) this.#fullLanes--;
    this.#lanes.set(key, kept);
    for (const record of taken) this.#waitingBytes -= record.payloadBytes;
    return taken;
  }

  /** The name of its lane. A message without a key has no order to keep. */
  keyOf({ message }: DeliveryRecord): string | undefined {
    if (this.#ordering === 'none') return undefined;
    if (this.#ordering === 'partition') return message.id.topic;
    return orderKeyOf(message);
  }
}
