// What one run of `wire-cuts` does, as a value: all of it follows from the seed.
import fc from 'fast-check';
import type { SubscriptionType } from '../../src/core/subscription-spec.js';
import type { Direction } from '../support/real-pulsar/faulty-proxy.js';

/** Before message number `before` is published, open connections (or the next one) get so many more bytes. */
export interface Cut {
  readonly before: number;
  readonly which: 'open' | 'next';
  readonly direction: Direction;
  readonly bytes: number;
}

export interface CutPlan {
  readonly type: SubscriptionType;
  readonly partitions: 0 | 2;
  /** Whether the broker drops what it is sent twice: then each message must be stored exactly once. */
  readonly deduplicates: boolean;
  /** Whether publisher and subscription share their connection, as they do in one runtime. */
  readonly sharesConnection: boolean;
  readonly messages: number;
  readonly payloadBytes: number;
  /** Messages in a batch at most; 1 sends each alone. */
  readonly batchSize: number;
  /** Messages that are published without waiting for receipts. */
  readonly window: number;
  readonly prefetch: number;
  readonly cuts: readonly Cut[];
}

/** Handshake and registration take some hundred bytes each, the messages of a run some thousand. */
const soon = fc.integer({ min: 0, max: 400 });
const anyTime = fc.oneof(soon, fc.integer({ min: 0, max: 6_000 }));
const direction = fc.constantFrom<Direction[]>('to-client', 'to-broker');

const plan = fc
  .record({
    type: fc.constantFrom<SubscriptionType>('shared', 'exclusive', 'failover', 'key-shared'),
    partitions: fc.constantFrom<(0 | 2)[]>(0, 0, 2),
    deduplicates: fc.boolean(),
    sharesConnection: fc.boolean(),
    messages: fc.integer({ min: 60, max: 160 }),
    payloadBytes: fc.constantFrom(0, 20, 300),
    batchSize: fc.constantFrom(1, 7, 50),
    window: fc.integer({ min: 1, max: 40 }),
    prefetch: fc.constantFrom(4, 30, 1_000),
  })
  .chain((base) => cutsOf(base.messages).map((cuts): CutPlan => ({ ...base, cuts })));

/** The first one comes early and soon, so that no run passes without any. */
function cutsOf(messages: number): fc.Arbitrary<readonly Cut[]> {
  const which = fc.constantFrom<Cut['which'][]>('open', 'open', 'next');
  const first = fc.record({ before: fc.nat(20), which: fc.constant('open' as const), direction, bytes: soon });
  const others = fc.array(fc.record({ before: fc.nat(messages - 1), which, direction, bytes: anyTime }), {
    minLength: 2,
    maxLength: 7,
  });
  return fc.tuple(first, others).map((cuts) => cuts.flat().sort((a, b) => a.before - b.before));
}

export function cutPlan(seed: number): CutPlan {
  const [sampled] = fc.sample(plan, { numRuns: 1, seed });
  return sampled!;
}
