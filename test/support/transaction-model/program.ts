// A run of the transaction model as a value: what clients do, in which order, and what breaks. All that happens follows from it.
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';

/** What becomes of the notices that something was appended: told, told a few at once, told late, never told. */
export const NOTICES = ['all', 'collapsed', 'late', 'lost'] as const;
export type Notices = (typeof NOTICES)[number];

export interface Setting {
  /** Chooses how long each call to a store takes, which notices are told, and whether a broker has the records for itself. */
  readonly seed: number;
  /** For each topic the types of its subscriptions. */
  readonly topics: readonly (readonly SubscriptionType[])[];
  readonly notices: Notices;
  /** The answer of a store comes after so many microtasks at most. */
  readonly latency: number;
  readonly maxLedgerEntries: number;
  /** Whether pending acknowledgements of the first topic are kept as those of segments. */
  readonly hasSegment: boolean;
}

/** `at` names one of those that are there, counted round: a topic, a consumer, one of its messages, a transaction. */
export type Act =
  | { readonly do: 'begin'; readonly timeoutMs: number }
  /** @param transaction undefined: none. @param batch messages in one entry; 0: none, a single one */
  | { readonly do: 'publish'; readonly at: number; readonly transaction: number | undefined; readonly batch: number }
  | {
      readonly do: 'acknowledge';
      readonly consumer: number;
      readonly at: number;
      readonly transaction: number | undefined;
      /** On Exclusive and Failover only, elsewhere this message alone. */
      readonly isCumulative: boolean;
      /** Of those that it ever got; else of those that it holds. */
      readonly isAgain: boolean;
    }
  /** `rude`: without waiting for what is under way, as no client of ours does. */
  | { readonly do: 'commit' | 'abort'; readonly at: number; readonly rude: boolean }
  | { readonly do: 'redeliver'; readonly consumer: number; readonly at: number }
  | { readonly do: 'join'; readonly at: number }
  | { readonly do: 'leave'; readonly consumer: number }
  /** Of a topic; `restart` and `close` of all, whatever `at` says. */
  | { readonly do: 'unload' | 'restart' | 'close'; readonly at: number }
  | { readonly do: 'pass'; readonly ms: number }
  /** The process ends at its so manieth call to a store from now on, before it or behind it. */
  | { readonly do: 'crash'; readonly call: number; readonly isAfter: boolean }
  /** The same call fails: it was not made, or only its answer is lost. */
  | { readonly do: 'fault'; readonly call: number; readonly isAfter: boolean };

/** @param ticks microtasks until the next one is begun; undefined: until nothing happens any more. */
export type Step = Act & { readonly ticks: number | undefined };

export interface Program {
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

/** Calls fail, or the process ends: what a client was told then may be that nothing is known. */
export function isCalm({ steps }: Program): boolean {
  return !steps.some((step) => step.do === 'crash' || step.do === 'fault' || step.do === 'close');
}
