// How often and how fast a failed delivery comes back to its handler before it becomes a dead letter.
import type { Backoff } from './backoff.js';
import { MAX_BACKOFF_MS, exponentialBackoff } from './backoff.js';
import { PulseworkError, containRejection, describeValue } from './errors.js';
import type { OptionChecker } from './options.js';

export interface RedeliveryPolicyOptions {
  /** Deliveries to the handler, the first included; the dead letter follows the last failed one at once. @default 10 */
  readonly maxDeliveries?: number | undefined;
  /** @default exponentialBackoff(): 1 s to 10 min, doubling, no jitter */
  readonly backoff?: Backoff | undefined;
}

export interface RedeliveryPolicy {
  readonly maxDeliveries: number;
  readonly backoff: Backoff;
}

export const DEFAULT_REDELIVERY_POLICY: RedeliveryPolicy = { maxDeliveries: 10, backoff: exponentialBackoff() };

/** Fields that are absent come from `base`. */
export function resolveRedeliveryPolicy(
  options: RedeliveryPolicyOptions | undefined,
  base: RedeliveryPolicy = DEFAULT_REDELIVERY_POLICY,
): RedeliveryPolicy {
  return { maxDeliveries: options?.maxDeliveries ?? base.maxDeliveries, backoff: options?.backoff ?? base.backoff };
}

export function checkRedeliveryPolicy(options: unknown, check: OptionChecker): void {
  if (options === undefined || !check.object('redelivery', options, '{ maxDeliveries, backoff }')) return;
  check.unknownOptions(options, ['maxDeliveries', 'backoff'], 'redelivery.');
  check.positiveInteger('redelivery.maxDeliveries', options['maxDeliveries']);
  const { backoff } = options;
  check.function('redelivery.backoff', backoff, backoffHint(backoff));
}

/** What a backoff that is no function most likely meant. */
export function backoffHint(backoff: unknown): string {
  if (typeof backoff === 'number') return `fixedBackoff(${backoff})`;
  return Array.isArray(backoff) ? `steppedBackoff([${backoff.join(', ')}])` : 'exponentialBackoff()';
}

/**
 * The wait before the delivery that follows a failed `attempt` (1 for the first).
 * @throws PulseworkError POLICY_FAILED when the backoff throws or gives something that is not a delay.
 */
export function redeliveryDelayMs(policy: RedeliveryPolicy, attempt: number, random: () => number): number {
  let delayMs: unknown;
  try {
    delayMs = policy.backoff(attempt - 1, random);
  } catch (error) {
    throw new PulseworkError('POLICY_FAILED', `the backoff threw on redelivery ${attempt - 1}`, { cause: error });
  }
  if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(Math.trunc(delayMs), MAX_BACKOFF_MS);
  containRejection(delayMs);
  const message = `a backoff must give milliseconds of 0 or more, got ${describeValue(delayMs)} on redelivery ${attempt - 1}`;
  throw new PulseworkError('POLICY_FAILED', message);
}
