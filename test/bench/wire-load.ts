// What the benchmarks of the wire send and receive: small and larger messages, in batches and one by one.
import { randomUUID } from 'node:crypto';

export interface WireLoad {
  readonly name: string;
  readonly bytes: number;
  readonly batched: boolean;
  /** Per round. */
  readonly messages: number;
}

export const WIRE_LOADS: readonly WireLoad[] = [
  { name: '100 B, batched', bytes: 100, batched: true, messages: 100_000 },
  { name: '1 KB, batched', bytes: 1_024, batched: true, messages: 40_000 },
  { name: '100 B, one by one', bytes: 100, batched: false, messages: 20_000 },
  { name: '1 KB, one by one', bytes: 1_024, batched: false, messages: 20_000 },
];

/** Rounds until Java's compiler and V8's are done, as far as could be seen. */
export const WARM_UP_ROUNDS = 8;

export function newTopic(): string {
  return `persistent://public/default/bench-${randomUUID()}`;
}
