// An interleaving as a value: what is published, what becomes of each run, who joins and leaves, and what breaks. All that a
// run of it does follows from it.
import type { Fault } from '../../../src/testing.js';

/**
 * Where a message that failed waits. `broker`: at a broker that keeps the order of its key (PIP-493). `broker-cannot`: in
 * place, because the broker does not, though it is asked for. `disabled`: in place, because it is not to be asked.
 */
export const MODES = ['broker', 'broker-cannot', 'disabled'] as const;
export type Mode = (typeof MODES)[number];

/** How one run of a message ends; after the last one it has, every run ends with success. */
export interface Ending {
  readonly how: 'retry' | 'retry-after' | 'throw' | 'defer' | 'poison' | 'dependency-down' | 'success';
  /** Milliseconds until it is to run again, where the outcome says so. */
  readonly delayMs: number;
  /** Milliseconds that the run takes. */
  readonly runMs: number;
}

export interface Job {
  /** Undefined: it has no order to keep. */
  readonly key: string | undefined;
  readonly endings: readonly Ending[];
}

/** `at` names a process by its place among those that are there, or a partition, counted round. */
export type Step =
  | { readonly do: 'publish'; readonly jobs: readonly Job[] }
  | { readonly do: 'publish-batch'; readonly jobs: readonly Job[] }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'join' }
  | { readonly do: 'drain'; readonly at: number }
  | { readonly do: 'crash'; readonly at: number }
  | { readonly do: 'unload'; readonly at: number }
  | { readonly do: 'restart' }
  | { readonly do: 'fault'; readonly at: number; readonly fault: Fault }
  | { readonly do: 'pause'; readonly at: number }
  | { readonly do: 'resume'; readonly at: number }
  | { readonly do: 'release'; readonly at: number }
  | { readonly do: 'skip'; readonly at: number };

export interface Setting {
  readonly mode: Mode;
  readonly partitions: number;
  readonly concurrency: number;
  readonly prefetch: number;
  readonly maxDeliveries: number;
  readonly backoffMs: number;
  readonly maxProcesses: number;
  readonly keyBlocks: boolean;
  readonly maxLaneMessages: number;
  readonly consistentHashing: boolean;
  readonly lookAhead: number;
  readonly maxRetryingPositions: number;
  /** Milliseconds that some deliveries and receipts take at most; 0: all come at once. */
  readonly latencyMs: number;
}

export interface Program {
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

/** After which a message may come a second time, or its failures be forgotten. */
const DISTURBANCES: readonly Step['do'][] = ['crash', 'unload', 'restart', 'fault'];

/** Whether nothing but joins, leaves by drain and failures happens. */
export function isCalm({ steps }: Program): boolean {
  return !steps.some((step) => DISTURBANCES.includes(step.do));
}
