// When nearly everything that a handler is given fails, taking more only makes more failures of it. The options of the pause
// that follows (K-53): what counts as broad, and how long it lasts.
import { describeValue } from './errors.js';
import type { OptionChecker } from './options.js';
import { minutes, seconds, withoutAbsent } from './options.js';

/** The numbers are those of the Pulsar proposal for a delivery pause on negative acknowledgements (K-53). */
export interface DeliveryPauseOptions {
  /** How many of the newest results decide, and how many messages come to try after a pause. @default 100 */
  readonly windowSize?: number | undefined;
  /** The share of failures among them from which nothing more is taken; above 0, at most 1. @default 1: all failed */
  readonly failureRatio?: number | undefined;
  /** Milliseconds of the first pause. @default 1 second */
  readonly initialDelayMs?: number | undefined;
  /** Milliseconds of the longest pause. @default 1 minute */
  readonly maxDelayMs?: number | undefined;
  /** How many times longer each pause is when what was tried after the one before failed too; 1 or more. @default 2 */
  readonly multiplier?: number | undefined;
}

export type DeliveryPausePolicy = {
  readonly [K in keyof DeliveryPauseOptions]-?: NonNullable<DeliveryPauseOptions[K]>;
};

export const DEFAULT_DELIVERY_PAUSE: DeliveryPausePolicy = {
  windowSize: 100,
  failureRatio: 1,
  initialDelayMs: seconds(1),
  maxDelayMs: minutes(1),
  multiplier: 2,
};

export function resolveDeliveryPause(options: DeliveryPauseOptions): DeliveryPausePolicy {
  return { ...DEFAULT_DELIVERY_PAUSE, ...withoutAbsent(options) };
}

export function checkDeliveryPause(options: unknown, check: OptionChecker): void {
  if (options === undefined || !check.object('deliveryPause', options, '{}, which takes the defaults')) return;
  check.unknownOptions(options, Object.keys(DEFAULT_DELIVERY_PAUSE), 'deliveryPause.');
  check.positiveInteger('deliveryPause.windowSize', options['windowSize']);
  const { failureRatio, multiplier } = options;
  if (failureRatio !== undefined && !isNumber(failureRatio, Number.MIN_VALUE, 1))
    check.problem(`"deliveryPause.failureRatio" must be above 0 and at most 1, got ${describeValue(failureRatio)}`);
  if (multiplier !== undefined && !isNumber(multiplier, 1, Number.MAX_VALUE))
    check.problem(`"deliveryPause.multiplier" must be a number of 1 or more, got ${describeValue(multiplier)}`);
  check.durationMs('deliveryPause.initialDelayMs', options['initialDelayMs'], { minMs: 1 });
  check.durationMs('deliveryPause.maxDelayMs', options['maxDelayMs'], { minMs: 1 });
  const { initialDelayMs, maxDelayMs } = resolveDeliveryPause(options);
  if (initialDelayMs > maxDelayMs) {
    check.problem(
      `"deliveryPause.maxDelayMs" must not be below "deliveryPause.initialDelayMs", got ${maxDelayMs} and ${initialDelayMs}`,
    );
  }
}

function isNumber(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}
