// How often a transaction coordinator looks after what nobody ended, and how long it remembers what has ended.
import { describeValue } from '../../core/errors.js';
import { OptionChecker, minutes } from '../../core/options.js';

export interface CoordinatorOptions {
  /**
   * How often transactions whose time is over are looked for and aborted, milliseconds: so much longer than its timeout one
   * may live (T-37). @default 1 minute, as Pulsar's transactionCoordinatorScalableTopicsTimeoutSweepIntervalSeconds
   */
  readonly sweepIntervalMs?: number | undefined;
  /** How often records of ended transactions are collected, milliseconds (T-37). @default 5 minutes, as Pulsar */
  readonly collectionIntervalMs?: number | undefined;
  /**
   * How long an ended transaction is remembered at least, milliseconds (T-37): so long a commit whose answer was lost can be
   * asked for again. @default 15 minutes, as Pulsar
   */
  readonly retentionMs?: number | undefined;
  /** Open transactions at which a coordinator begins no more (T-06); 0 for any number. @default 0, as Pulsar */
  readonly maxActiveTransactions?: number | undefined;
}

export type ResolvedCoordinatorOptions = { readonly [K in keyof CoordinatorOptions]-?: number };

export const DEFAULT_COORDINATOR_OPTIONS: ResolvedCoordinatorOptions = {
  sweepIntervalMs: minutes(1),
  collectionIntervalMs: minutes(5),
  retentionMs: minutes(15),
  maxActiveTransactions: 0,
};

/** @throws ConfigurationError listing every problem. */
export function resolveCoordinatorOptions(options: CoordinatorOptions): ResolvedCoordinatorOptions {
  const check = new OptionChecker('transactions');
  if (check.object('options', options)) checkOptions(check, options);
  check.throwIfAny();
  return {
    sweepIntervalMs: options.sweepIntervalMs ?? DEFAULT_COORDINATOR_OPTIONS.sweepIntervalMs,
    collectionIntervalMs: options.collectionIntervalMs ?? DEFAULT_COORDINATOR_OPTIONS.collectionIntervalMs,
    retentionMs: options.retentionMs ?? DEFAULT_COORDINATOR_OPTIONS.retentionMs,
    maxActiveTransactions: options.maxActiveTransactions ?? DEFAULT_COORDINATOR_OPTIONS.maxActiveTransactions,
  };
}

function checkOptions(check: OptionChecker, options: CoordinatorOptions): void {
  check.unknownOptions(options, Object.keys(DEFAULT_COORDINATOR_OPTIONS));
  check.durationMs('sweepIntervalMs', options.sweepIntervalMs, { minMs: 1 });
  check.durationMs('collectionIntervalMs', options.collectionIntervalMs, { minMs: 1 });
  check.durationMs('retentionMs', options.retentionMs);
  const { maxActiveTransactions: max } = options;
  if (max === undefined || (Number.isSafeInteger(max) && max >= 0)) return;
  check.problem(`"maxActiveTransactions" must be a whole number from 0, got ${describeValue(max)}`);
}
