// Random programs on the tracker and on a plain model (a list of what waits) must ask for the same entries at the
// same times.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { MessageId } from '../../../src/core/message-id.js';
import { compareMessageIds, sameEntry, sameMessageId } from '../../../src/core/message-id.js';
import { TrackerBench, idOf } from './held-ids.js';

type Step =
  | { readonly do: 'hold'; readonly id: MessageId; readonly delayMs: number }
  | { readonly do: 'acknowledge'; readonly id: MessageId }
  | { readonly do: 'acknowledgeCumulative'; readonly id: MessageId }
  | { readonly do: 'advance'; readonly ms: number };

interface Waiting {
  readonly id: MessageId;
  dueMs: number;
}

/** Everything that waits, one element per message; an entry's messages share the earliest due time. */
class Model {
  #nowMs = 0;
  #waiting: Waiting[] = [];
  readonly requests: { readonly afterMs: number; readonly entries: readonly string[] }[] = [];

  get entries(): number {
    return new Set(this.#waiting.map(({ id }) => entryText(id))).size;
  }

  run(step: Step): void {
    if (step.do === 'hold') this.#hold(step.id, this.#nowMs + step.delayMs);
    else if (step.do === 'acknowledge') this.#cancel((id) => covers(step.id, id));
    else if (step.do === 'acknowledgeCumulative') this.#cancel((id) => coversAllBefore(step.id, id));
    else this.#advance(this.#nowMs + step.ms);
  }

  #hold(id: MessageId, dueMs: number): void {
    if (!this.#waiting.some((waiting) => sameMessageId(waiting.id, id))) this.#waiting.push({ id, dueMs });
    const entry = this.#waiting.filter((waiting) => sameEntry(waiting.id, id));
    const firstMs = Math.min(dueMs, ...entry.map((waiting) => waiting.dueMs));
    for (const waiting of entry) waiting.dueMs = firstMs;
    // An entry held as a whole holds no message of it apart.
    const whole = entry.find((waiting) => waiting.id.batchIndex < 0);
    if (whole !== undefined) this.#waiting = this.#waiting.filter((one) => one === whole || !entry.includes(one));
  }

  #cancel(isCovered: (id: MessageId) => boolean): void {
    this.#waiting = this.#waiting.filter(({ id }) => !isCovered(id));
  }

  #advance(untilMs: number): void {
    for (;;) {
      const nextMs = Math.max(this.#nowMs, Math.min(...this.#waiting.map(({ dueMs }) => dueMs)));
      if (nextMs > untilMs) break;
      this.#nowMs = nextMs;
      const due = this.#waiting.filter(({ dueMs }) => dueMs <= nextMs);
      this.#waiting = this.#waiting.filter(({ dueMs }) => dueMs > nextMs);
      this.requests.push({ afterMs: nextMs, entries: [...new Set(due.map(({ id }) => entryText(id)))].sort() });
    }
    this.#nowMs = untilMs;
  }
}

function entryText(id: MessageId): string {
  return `${id.ledgerId}:${id.entryId}:${id.partition}`;
}

function covers(acknowledged: MessageId, id: MessageId): boolean {
  return acknowledged.batchIndex < 0 ? sameEntry(acknowledged, id) : sameMessageId(acknowledged, id);
}

function coversAllBefore(acknowledged: MessageId, id: MessageId): boolean {
  if (acknowledged.partition !== id.partition) return false;
  if (acknowledged.batchIndex < 0 && sameEntry(acknowledged, id)) return true;
  if (sameEntry(acknowledged, id)) return id.batchIndex >= 0 && id.batchIndex <= acknowledged.batchIndex;
  return compareMessageIds(id, acknowledged) < 0;
}

const ids: fc.Arbitrary<MessageId> = fc
  .record({
    ledgerId: fc.constantFrom(1, 2, 2 ** 33),
    entryId: fc.nat(5),
    partition: fc.constantFrom(-1, 0),
    batchIndex: fc.constantFrom(-1, 0, 1, 2),
  })
  .map((more) => idOf(more.entryId, { ...more, batchSize: more.batchIndex < 0 ? 0 : 3 }));

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('hold' as const), id: ids, delayMs: fc.nat(100) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('acknowledge' as const), id: ids }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('acknowledgeCumulative' as const), id: ids }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat(60) }) },
);

it('asks for the same entries at the same times as a plain list would', async () => {
  const programs = fc.array(steps, { maxLength: 60 });
  const property = fc.asyncProperty(programs, async (program) => {
    const bench = new TrackerBench();
    const model = new Model();
    for (const step of [...program, { do: 'advance', ms: 1_000 } as const]) {
      model.run(step);
      if (step.do === 'hold') bench.tracker.add(step.id, bench.clock.now() + step.delayMs);
      else if (step.do === 'advance') await bench.clock.advanceBy(step.ms);
      else bench.tracker[step.do](step.id);
      expect(bench.tracker.size).toBe(model.entries);
    }
    expect(bench.requests.map(({ afterMs, ids }) => ({ afterMs, entries: ids.map(withoutBatch).sort() }))).toEqual(
      model.requests,
    );
    expect(bench.clock.pendingTimers).toEqual([]);
  });
  await fc.assert(property, { numRuns: 300, seed: 20_260_101 });
});

function withoutBatch(idText: string): string {
  return idText.split(':').slice(0, 3).join(':');
}
