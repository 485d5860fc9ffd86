// What held redeliveries cost: bytes per entry at 50,000 held, and the time of add and cancel beside a bare binary
// heap in the same run. Run: node --expose-gc --import tsx test/bench/held-memory.ts
import type { MessageId } from '../../src/core/message-id.js';
import { minutes } from '../../src/core/options.js';
import { NegativeAckTracker } from '../../src/redelivery/negative-ack-tracker.js';
import { systemClock } from '../../src/system/system-clock.js';

const HELD = 50_000;
const ROUNDS = 15;

/** The same numbers in every run: delays from 1 s to 10 min in random order. */
function mixedDelays(count: number): Float64Array {
  let state = 12_345;
  return Float64Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 1;
    return 1_000 + (state % minutes(10));
  });
}

function messageId(n: number): MessageId {
  const topic = `persistent://acme/prod/orders-partition-${n % 4}`;
  return { ledgerId: 4_000_000_000 + (n % 50), entryId: n, partition: n % 4, batchIndex: -1, batchSize: 0, topic };
}

function newTracker(): NegativeAckTracker {
  return new NegativeAckTracker({ clock: systemClock, redeliver: () => Promise.resolve() });
}

function usedBytes(): number {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Bytes per entry of a tracker that holds `count`, everything of it included. */
export function heldBytesPerEntry(count: number): number {
  const delays = mixedDelays(count);
  const nowMs = Date.now();
  newTracker().close();
  const before = usedBytes();
  const tracker = newTracker();
  for (let n = 0; n < count; n++) tracker.add(messageId(n), nowMs + (delays[n] ?? 0));
  const bytes = (usedBytes() - before) / count;
  if (tracker.size !== count) throw new Error(`held ${tracker.size} of ${count}`);
  tracker.close();
  return bytes;
}

/** The least a delay tracker could do: pairs of due time and id in a heap; cancelling is taking from the top. */
class BareHeap {
  readonly #heap: { readonly dueMs: number; readonly id: MessageId }[] = [];

  push(dueMs: number, id: MessageId): void {
    const heap = this.#heap;
    const item = { dueMs, id };
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (heap[above]!.dueMs <= dueMs) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = item;
  }

  pop(): MessageId | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first?.id;
    let at = 0;
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && heap[below + 1]!.dueMs < heap[below]!.dueMs) below++;
      if (heap[below]!.dueMs >= last.dueMs) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
    return first?.id;
  }
}

/** Nanoseconds for one entry to be added and cancelled, of the tracker and of the bare heap, round by round. */
export function addAndCancelTimes(count: number, rounds: number): { tracker: number[]; bareHeap: number[] } {
  const delays = mixedDelays(count);
  const nowMs = Date.now();
  const ids = Array.from({ length: count }, (_, n) => messageId(n));
  const times = { tracker: [] as number[], bareHeap: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    times.bareHeap.push(
      timed(count, () => {
        const heap = new BareHeap();
        ids.forEach((id, n) => heap.push(nowMs + (delays[n] ?? 0), id));
        while (heap.pop() !== undefined);
      }),
    );
    times.tracker.push(
      timed(count, () => {
        const tracker = newTracker();
        ids.forEach((id, n) => tracker.add(id, nowMs + (delays[n] ?? 0)));
        for (const id of ids) tracker.acknowledge(id);
        tracker.close();
      }),
    );
  }
  return times;
}

function timed(count: number, run: () => void): number {
  const start = process.hrtime.bigint();
  run();
  return Number(process.hrtime.bigint() - start) / count;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

function main(): void {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  for (const count of [1_000, HELD, 60_000]) {
    console.log(`${count} held: ${heldBytesPerEntry(count).toFixed(0)} bytes per entry`);
  }
  const { tracker, bareHeap } = addAndCancelTimes(HELD, ROUNDS);
  const ratio = median(tracker) / median(bareHeap);
  const shown = `${median(tracker).toFixed(0)} ns, bare heap ${median(bareHeap).toFixed(0)} ns, ratio ${ratio.toFixed(2)}`;
  console.log(`add and cancel: ${shown}`);
}

if (process.argv[1] === import.meta.filename) main();
