// The random programs of `transaction-kills`, equal for equal seeds, and what a killed service and its judge have in common.
import { SUBSCRIPTION_TYPES, redeliversSingly } from '../../../src/core/subscription-spec.js';
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import { scattered } from '../seeded.js';

/** One topic that jobs come from, and how they are worked off. */
export interface InputPlan {
  readonly name: string;
  readonly type: SubscriptionType;
  /** Messages in each entry that is published; 1: single ones. */
  readonly batch: number;
  readonly consumers: number;
  /** Transactions at once on each consumer. */
  readonly atOnce: number;
  /** Messages in each transaction, at most. */
  readonly perTransaction: number;
  /** Everything up to the last message, and not each of them. */
  readonly isCumulative: boolean;
  /** In [0, 1]. */
  readonly aborts: number;
  /** Results of each job, at most. */
  readonly results: number;
}

/** All of it is JSON, because it is an argument. */
export interface KillsPlan {
  readonly inputs: readonly InputPlan[];
  readonly outputs: readonly string[];
  /** Jobs that each life publishes to each input. */
  readonly jobs: number;
  readonly maxLedgerEntries: number;
  readonly kills: number;
}

export interface KillsSettings {
  readonly dir: string;
  readonly seed: number;
  /** Which one it is on this folder, from 0. */
  readonly life: number;
  readonly plan: KillsPlan;
}

export const WORKERS = 'workers';

/** Short, so that all of it happens in a life of moments. */
export const SWEEPS = { sweepIntervalMs: 100, collectionIntervalMs: 100, retentionMs: 100 };
export const TRANSACTION_MS = 2_000;

export function planOf(seed: number): KillsPlan {
  const next = scattered(seed);
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const oneOf = <T>(choices: readonly T[]): T => choices[whole(0, choices.length - 1)]!;
  const input = (at: number): InputPlan => {
    const type = oneOf(SUBSCRIPTION_TYPES);
    const isMany = redeliversSingly(type);
    const isCumulative = !isMany && next() < 0.6;
    // Pending acknowledgements of segments are kept elsewhere than those of other topics (T-43).
    const name = at === 0 && next() < 0.3 ? 'segment://public/default/jobs/0000-ffff-0' : `jobs-${at}`;
    return {
      ...{ name, type, isCumulative, batch: oneOf([1, 1, 2, 5]), perTransaction: whole(1, 4), results: whole(1, 3) },
      consumers: isMany ? whole(1, 2) : 1,
      atOnce: isCumulative ? 1 : whole(1, 2),
      aborts: oneOf([0, 0.2, 0.5]),
    };
  };
  return {
    inputs: Array.from({ length: whole(1, 3) }, (_, at) => input(at)),
    outputs: Array.from({ length: whole(1, 3) }, (_, at) => `results-${at}`),
    jobs: whole(3, 15),
    maxLedgerEntries: oneOf([3, 20, 10_000]),
    kills: whole(1, 3),
  };
}
