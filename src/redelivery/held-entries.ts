// The entries that wait for redelivery, in columns by slot: about 100 bytes each, whatever the objects were that
// their ids came in. An entry is pending (in the heap) or in flight (part of a redelivery request).
import { EntryIndex, NO_SLOT, grown } from '../core/entry-index.js';
import type { MessageId } from '../core/message-id.js';
import type { BatchScope } from './batch-scope.js';
import { WHOLE_ENTRY, scopeHas, scopeOf, withIndex, withoutIndex, withoutIndexesUpTo } from './batch-scope.js';
import { DueHeap } from './due-heap.js';

/** The request of an entry that is in none. */
const NO_REQUEST = 0;

export class HeldEntries {
  readonly #index = new EntryIndex();
  readonly #heap = new DueHeap();
  /** The columns: scope, topic, batch size, and the number of the request an entry in flight belongs to. */
  readonly #scopes: BatchScope[] = [];
  readonly #topics: string[] = [];
  #batchSizes = new Float64Array(0);
  #requests = new Float64Array(0);
  /** One text per topic, however many copies of it the ids bring. */
  readonly #topicTexts = new Map<string, string>();

  constructor() {
    this.#reserve();
  }

  /** Pending and in flight. */
  get size(): number {
    return this.#index.size;
  }

  /** When the first pending entry is due; undefined when none is pending. */
  get nextDueMs(): number | undefined {
    return this.#heap.firstDueMs;
  }

  /** Room that is kept, in entries. */
  get capacity(): number {
    return this.#index.capacity;
  }

  /** Whether redelivery of this message waits or is being asked for. An id without a batch index asks for any of the entry. */
  has(id: MessageId): boolean {
    const slot = this.#index.find(id);
    if (slot === NO_SLOT) return false;
    return id.batchIndex < 0 || scopeHas(this.#scope(slot), id.batchIndex);
  }

  isInFlight(id: MessageId): boolean {
    const slot = this.#index.find(id);
    return slot !== NO_SLOT && !this.#heap.has(slot);
  }

  /** Holds `id` until `dueMs`. A pending entry keeps the earlier time (N-23); one in flight leaves its request. */
  hold(id: MessageId, dueMs: number): void {
    const slot = this.#index.find(id);
    if (slot === NO_SLOT) {
      this.#holdNew(id, dueMs);
      return;
    }
    this.#scopes[slot] = withIndex(this.#scope(slot), id.batchIndex);
    if (this.#heap.has(slot)) this.#heap.moveEarlier(slot, dueMs);
    else this.#makePending(slot, dueMs);
  }

  /** Takes `id` into the scope of its entry, which is held. */
  widen(id: MessageId): void {
    const slot = this.#index.find(id);
    this.#scopes[slot] = withIndex(this.#scope(slot), id.batchIndex);
  }

  /** Cancels what an acknowledgement of `id` covers: its own index, or the whole entry without one (N-27). */
  acknowledge(id: MessageId): void {
    const slot = this.#index.find(id);
    if (slot === NO_SLOT) return;
    this.#narrow(slot, id.batchIndex < 0 ? undefined : withoutIndex(this.#scope(slot), id.batchIndex));
  }

  /** The same for all messages up to `id` on its topic and partition (N-28). Looks at every entry. */
  acknowledgeCumulative(id: MessageId): void {
    for (const slot of this.#index.slots()) {
      const { ledgerId, entryId, partition } = this.#index.position(slot);
      if (partition !== id.partition || !this.#isOfTopic(slot, id.topic)) continue;
      const order = ledgerId - id.ledgerId || entryId - id.entryId;
      if (order < 0) this.#drop(slot);
      else if (order === 0) this.#acknowledgeUpTo(slot, id.batchIndex);
    }
  }

  /** Cancels what is held of a topic. Looks at every entry. */
  forgetTopic(topic: string): void {
    for (const slot of this.#index.slots()) if (this.#isOfTopic(slot, topic)) this.#drop(slot);
  }

  /** Moves up to `limit` entries that are due, earliest first, to `request`. Gives their slots. */
  takeDue(nowMs: number, limit: number, request: number): number[] {
    const taken: number[] = [];
    while (taken.length < limit) {
      const slot = this.#heap.first;
      if (slot === undefined || (this.#heap.firstDueMs as number) > nowMs) break;
      this.#heap.remove(slot);
      this.#requests[slot] = request;
      taken.push(slot);
    }
    return taken;
  }

  /** The request was made: entries that are still part of it are held no longer. */
  release(slots: readonly number[], request: number): void {
    for (const slot of slots) if (this.#requests[slot] === request) this.#drop(slot);
  }

  /** The request failed: entries that are still part of it are pending again. */
  takeBack(slots: readonly number[], request: number, dueMs: number): void {
    for (const slot of slots) if (this.#requests[slot] === request) this.#makePending(slot, dueMs);
  }

  /** All pending entries, in no particular order. */
  pending(): { readonly id: MessageId; readonly dueMs: number }[] {
    const slots = this.#index.slots().filter((slot) => this.#heap.has(slot));
    return slots.map((slot) => ({ id: this.idOf(slot), dueMs: this.#heap.dueMs(slot) }));
  }

  /** The id of the one message held of an entry, or of the whole entry. */
  idOf(slot: number): MessageId {
    const scope = this.#scope(slot);
    return {
      ...this.#index.position(slot),
      batchIndex: typeof scope === 'number' ? scope : WHOLE_ENTRY,
      batchSize: this.#batchSizes[slot] as number,
      topic: this.#topics[slot] as string,
    };
  }

  #holdNew(id: MessageId, dueMs: number): void {
    const slot = this.#index.add(id);
    this.#reserve();
    this.#scopes[slot] = scopeOf(id.batchIndex);
    this.#topics[slot] = this.#sharedTopic(id.topic);
    this.#batchSizes[slot] = id.batchSize;
    this.#heap.add(slot, dueMs);
  }

  #makePending(slot: number, dueMs: number): void {
    this.#requests[slot] = NO_REQUEST;
    this.#heap.add(slot, dueMs);
  }

  #acknowledgeUpTo(slot: number, batchIndex: number): void {
    this.#narrow(slot, batchIndex < 0 ? undefined : withoutIndexesUpTo(this.#scope(slot), batchIndex));
  }

  #narrow(slot: number, scope: BatchScope | undefined): void {
    if (scope === undefined) this.#drop(slot);
    else this.#scopes[slot] = scope;
  }

  #drop(slot: number): void {
    if (this.#heap.has(slot)) this.#heap.remove(slot);
    this.#requests[slot] = NO_REQUEST;
    this.#scopes[slot] = WHOLE_ENTRY;
    this.#index.remove(slot);
  }

  #scope(slot: number): BatchScope {
    return this.#scopes[slot] as BatchScope;
  }

  /** An id whose topic is not known may be of any. */
  #isOfTopic(slot: number, topic: string): boolean {
    const own = this.#topics[slot];
    return own === topic || own === '' || topic === '';
  }

  #sharedTopic(topic: string): string {
    const shared = this.#topicTexts.get(topic);
    if (shared !== undefined) return shared;
    this.#topicTexts.set(topic, topic);
    return topic;
  }

  #reserve(): void {
    const { capacity } = this.#index;
    if (capacity === this.#requests.length) return;
    this.#batchSizes = grown(this.#batchSizes, new Float64Array(capacity));
    this.#requests = grown(this.#requests, new Float64Array(capacity));
    this.#heap.reserve(capacity);
  }
}
