// How much of a handler one key or tenant may take: the options of fairness, and what they are decided by.
import type { Delivery } from './delivery.js';
import { describeValue } from './errors.js';
import type { OptionChecker } from './options.js';

/** What is known of a message before it is decoded: of one published again, as it came first. */
export type FairnessMessage = Pick<Delivery, 'topic' | 'key' | 'orderingKey' | 'properties'>;

/** At least one of `maxConcurrent` and `ratePerSecond`. */
export interface FairnessOptions {
  /**
   * Whose share a message takes, such as a tenant's name: a text; undefined for one without limits. What is thrown, or is
   * something else, is logged at error, and the message takes its order key's share. @default the ordering key, else the key
   */
  readonly by?: ((message: FairnessMessage) => string | undefined) | undefined;
  /** Runs of one `by` at a time; of a batch handler, its deliveries in batches. @default as many as there are slots */
  readonly maxConcurrent?: number | undefined;
  /**
   * Runs of one `by` that start per second, above 0; 0.5 is one every two seconds. After a quiet time one second's worth may
   * start at once, at least one: in any `t` seconds at most that and `ratePerSecond × t`. @default as many as there are
   */
  readonly ratePerSecond?: number | undefined;
}

export const FAIRNESS_OPTION_NAMES = [
  'by',
  'maxConcurrent',
  'ratePerSecond',
] as const satisfies readonly (keyof FairnessOptions)[];

export function checkFairness(options: unknown, check: OptionChecker): void {
  if (options === undefined || !check.object('fairness', options, '{ maxConcurrent: 4 }')) return;
  const { by, maxConcurrent, ratePerSecond } = options;
  check.unknownOptions(options, FAIRNESS_OPTION_NAMES, 'fairness.');
  check.function('fairness.by', by, '({ properties }) => properties.tenant');
  check.positiveInteger('fairness.maxConcurrent', maxConcurrent);
  const isRate = typeof ratePerSecond === 'number' && ratePerSecond > 0 && ratePerSecond < Infinity;
  if (ratePerSecond !== undefined && !isRate)
    check.problem(`"fairness.ratePerSecond" must be a finite number above 0, got ${describeValue(ratePerSecond)}`);
  if (maxConcurrent === undefined && ratePerSecond === undefined)
    check.problem('"fairness" limits nothing; give "maxConcurrent", "ratePerSecond" or both');
}
