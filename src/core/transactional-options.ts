// The option `transactional` of a handler: what follows from a message and its acknowledgement in one transaction.
import { describeValue } from './errors.js';
import { seconds } from './options.js';
import type { OptionChecker } from './options.js';

export interface TransactionalOptions {
  /**
   * Milliseconds from the beginning of a transaction until the broker aborts it. Should the process die, readers of the
   * topics it published to wait for that long, and so does its message. @default 10 seconds
   */
  readonly timeoutMs?: number | undefined;
}

/** What a handler's transactions go by, all of it. */
export interface TransactionalPlan {
  readonly timeoutMs: number;
}

export const DEFAULT_TRANSACTIONAL: TransactionalPlan = { timeoutMs: seconds(10) };

/** Undefined: without transactions. */
export function resolveTransactional(
  option: boolean | TransactionalOptions | undefined,
): TransactionalPlan | undefined {
  if (option === undefined || option === false) return undefined;
  return { timeoutMs: (option === true ? undefined : option.timeoutMs) ?? DEFAULT_TRANSACTIONAL.timeoutMs };
}

export function checkTransactional(option: unknown, check: OptionChecker): void {
  if (option === undefined || typeof option === 'boolean') return;
  if (typeof option !== 'object' || option === null || Array.isArray(option))
    return check.problem(`"transactional" must be true, false or { timeoutMs }, got ${describeValue(option)}`);
  check.unknownOptions(option, Object.keys(DEFAULT_TRANSACTIONAL), 'transactional.');
  check.durationMs('transactional.timeoutMs', (option as TransactionalOptions).timeoutMs, { minMs: 1 });
}
