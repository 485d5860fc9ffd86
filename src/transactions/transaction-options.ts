// What a transaction may be told when it begins.
import { ConfigurationError } from '../core/errors.js';
import { OptionChecker, minutes } from '../core/options.js';
import type { TransactionOptions } from '../ports/transaction.js';

const DEFAULT_TIMEOUT_MS = minutes(1);

/** @throws ConfigurationError */
export function resolveTransactionOptions(options: TransactionOptions): { readonly timeoutMs: number } {
  const check = new OptionChecker('transaction');
  if (!check.object('options', options)) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, ['timeoutMs']);
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options as TransactionOptions;
  check.durationMs('timeoutMs', timeoutMs, { minMs: 1 });
  check.throwIfAny();
  return { timeoutMs: Math.ceil(timeoutMs) };
}
