// What a NegativeAckTracker is told, the defaults and their checks.
import type { Backoff } from '../core/backoff.js';
import { describeValue } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { OptionChecker, minutes } from '../core/options.js';
import type { Clock } from '../ports/clock.js';

export interface NegativeAckTrackerOptions {
  readonly clock: Pick<Clock, 'now' | 'setTimer'>;
  /**
   * Asks the broker for redelivery of these entries, one id each: the message's own, or with `batchIndex` -1 where
   * several messages of the entry were held. Nothing smaller than an entry can be asked back (N-22). Resolves when the
   * request was handed over; a rejection means that nothing was asked, and the entries are due again after
   * `retryRequestMs`.
   *
   * An owner may refuse an entry, for instance while another message of its batch is running: it leaves the id out of
   * its request and calls `add` for it, at once or when the time has come.
   */
  readonly redeliver: (ids: readonly MessageId[]) => Promise<void>;
  /**
   * Milliseconds to wait where no backoff applies: always without `backoff`, and for ids and messages whose
   * redelivery count is not known (N-13). 0 asks at once. @default 60 seconds, as other Pulsar clients (N-10)
   */
  readonly delayMs?: number | undefined;
  /** The wait by redelivery count, called once per negative acknowledgement. @default none: always `delayMs` */
  readonly backoff?: Backoff | undefined;
  /** Numbers in [0, 1) for the jitter of `backoff`; required with it, e.g. `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Ids in one request, at most 1,000, as the Java client splits them (N-21). @default 1000 */
  readonly maxIdsPerRequest?: number | undefined;
  /** Milliseconds until a request that failed is made again (N-24). @default 500 */
  readonly retryRequestMs?: number | undefined;
  /** Told when a request was made and its entries are held no longer. @default nobody is told */
  readonly onReleased?: (() => void) | undefined;
  /** Told of each failed request. What it throws is an unhandled rejection. @default nobody is told */
  readonly onRequestFailed?: ((error: Error, ids: readonly MessageId[]) => void) | undefined;
  /** Told when `backoff` threw or gave no usable delay; `delayMs` was used. @default nobody is told */
  readonly onBackoffFailed?: ((error: Error) => void) | undefined;
}

export const DEFAULT_NEGATIVE_ACK_TRACKER = {
  delayMs: minutes(1),
  maxIdsPerRequest: 1_000,
  retryRequestMs: 500,
} as const;

/** Ids handled in one turn of the event loop: after a pause many are due at once, and input must not wait for all. */
export const MAX_IDS_PER_TURN = 1_000;

/** @throws ConfigurationError naming every option that is wrong. */
export function checkOptions(options: NegativeAckTrackerOptions): void {
  const check = new OptionChecker('NegativeAckTracker');
  check.unknownOptions(options, [...REQUEST_OPTIONS, 'delayMs', 'onReleased']);
  checkRequestOptions(options, check);
  check.durationMs('delayMs', options.delayMs);
  check.function('onReleased', options.onReleased);
  check.throwIfAny();
}

/** The options that everything shares that asks for redelivery after a backoff. */
export const REQUEST_OPTIONS = [
  'clock',
  'redeliver',
  'backoff',
  'random',
  'maxIdsPerRequest',
  'retryRequestMs',
  'onRequestFailed',
  'onBackoffFailed',
] as const satisfies readonly (keyof NegativeAckTrackerOptions)[];

type RequestOptions = Omit<Pick<NegativeAckTrackerOptions, (typeof REQUEST_OPTIONS)[number]>, 'clock'> & {
  readonly clock: Pick<Clock, 'setTimer'>;
};

export function checkRequestOptions(options: RequestOptions, check: OptionChecker): void {
  check.required(options, { clock: 'a Clock', redeliver: 'a function that asks the broker for redelivery' });
  const clock = options.clock as Partial<Clock> | null | undefined;
  if (clock !== undefined && typeof clock?.setTimer !== 'function') {
    check.problem(`"clock" must be a Clock, got ${describeValue(clock)}`);
  }
  check.function('redeliver', options.redeliver);
  check.durationMs('retryRequestMs', options.retryRequestMs);
  check.positiveInteger('maxIdsPerRequest', options.maxIdsPerRequest);
  if ((options.maxIdsPerRequest ?? 0) > MAX_IDS_PER_TURN) {
    check.problem(`"maxIdsPerRequest" must be at most ${MAX_IDS_PER_TURN}, got ${options.maxIdsPerRequest ?? ''}`);
  }
  for (const name of ['backoff', 'random', 'onRequestFailed', 'onBackoffFailed'] as const) {
    check.function(name, options[name]);
  }
  if (options.backoff !== undefined && options.random === undefined) {
    check.problem('"random" must be given with "backoff", e.g. Math.random');
  }
}
