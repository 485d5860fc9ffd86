// How long to wait before a redelivery (PIP-106). The argument is the number of redeliveries so far:
// 0 for the first failure, so the first wait is the minimum (N-09). Results are whole milliseconds.
import { describeValue } from './errors.js';
import { OptionChecker, hours, minutes, seconds } from './options.js';

/** @param redeliveries 0 for the first failure. @param random a number in [0, 1), used by jitter. @returns milliseconds. */
export type Backoff = (redeliveries: number, random: () => number) => number;

/** Upper end of what one wait may be: above it a policy is mistaken. */
export const MAX_BACKOFF_MS = hours(24 * 365);

export interface ExponentialBackoffOptions {
  /** @default 1 second */
  readonly minMs?: number | undefined;
  /** @default 10 minutes */
  readonly maxMs?: number | undefined;
  /** Above 1. @default 2 */
  readonly multiplier?: number | undefined;
  /** `full`: anything from 0 to the delay; `equal`: half of it plus anything up to the other half. @default 'none' */
  readonly jitter?: 'none' | 'full' | 'equal' | undefined;
}

export const DEFAULT_BACKOFF = { minMs: seconds(1), maxMs: minutes(10), multiplier: 2, jitter: 'none' } as const;

/**
 * `minMs`, then `multiplier` times as long each time, up to `maxMs`: what the Java and Rust clients call
 * MultiplierRedeliveryBackoff (Java begins at 10 s, N-02), and the fixed schedule of the Go client (N-04). A minimum of 0 stays 0 (N-06). The product is
 * cut to whole milliseconds (N-01: 100 ms times 1.5 three times is 337) and cannot overflow.
 * @throws ConfigurationError naming each constraint that failed and the value.
 */
export function exponentialBackoff(options: ExponentialBackoffOptions = {}): Backoff {
  const { minMs = DEFAULT_BACKOFF.minMs, maxMs = DEFAULT_BACKOFF.maxMs } = options;
  const { multiplier = DEFAULT_BACKOFF.multiplier, jitter = DEFAULT_BACKOFF.jitter } = options;
  const check = new OptionChecker('exponentialBackoff');
  check.unknownOptions(options, ['minMs', 'maxMs', 'multiplier', 'jitter']);
  check.durationMs('minMs', minMs);
  check.durationMs('maxMs', maxMs);
  if (maxMs < minMs) check.problem(`"maxMs" must be at least "minMs", got minMs ${minMs} and maxMs ${maxMs}`);
  if (!Number.isFinite(multiplier)) check.problem(`"multiplier" must be finite, got ${multiplier}`);
  else if (multiplier <= 1) check.problem(`"multiplier" must be greater than 1, got ${multiplier}`);
  check.oneOf('jitter', jitter, ['none', 'full', 'equal']);
  check.throwIfAny();
  return (redeliveries, random) => jittered(exponential(redeliveries, minMs, maxMs, multiplier), jitter, random);
}

/**
 * One wait after the other, as listed; the last one for every further redelivery.
 * @param delaysMs milliseconds, at least one delay; 0 asks for redelivery at once.
 * @throws ConfigurationError naming each delay that is wrong and its place.
 */
export function steppedBackoff(delaysMs: readonly number[]): Backoff {
  const check = new OptionChecker('steppedBackoff');
  if (!Array.isArray(delaysMs) || delaysMs.length === 0) {
    check.problem(`"delaysMs" must be a list of at least one delay, got ${describeValue(delaysMs)}`);
  } else {
    // By index: a hole in the list is a delay that is missing.
    for (let at = 0; at < delaysMs.length; at++) {
      const name = `delaysMs[${at}]`;
      const delayMs = (delaysMs as unknown[])[at];
      check.required({ [name]: delayMs }, { [name]: 'a duration in milliseconds' });
      check.durationMs(name, delayMs);
    }
  }
  check.throwIfAny();
  const steps = delaysMs.map(Math.trunc);
  return (redeliveries) => steps[Math.min(Math.max(0, redeliveries), steps.length - 1)] as number;
}

/** The same wait every time. @param delayMs milliseconds; 0 asks for redelivery at once. */
export function fixedBackoff(delayMs: number): Backoff {
  const check = new OptionChecker('fixedBackoff');
  check.required({ delayMs }, { delayMs: 'a duration in milliseconds' });
  check.durationMs('delayMs', delayMs);
  check.throwIfAny();
  const wait = Math.trunc(delayMs);
  return () => wait;
}

function exponential(redeliveries: number, minMs: number, maxMs: number, multiplier: number): number {
  if (redeliveries <= 0 || minMs === 0) return Math.trunc(minMs);
  // A large power is Infinity, never negative: the smaller of it and maxMs is maxMs.
  return Math.trunc(Math.min(minMs * multiplier ** redeliveries, maxMs));
}

function jittered(delayMs: number, jitter: 'none' | 'full' | 'equal', random: () => number): number {
  if (jitter === 'none') return delayMs;
  if (jitter === 'full') return Math.trunc(random() * delayMs);
  return Math.trunc(delayMs / 2 + (random() * delayMs) / 2);
}
