// Batch handlers: one call for many deliveries, one outcome for all of them or one each. Only the call is shared: each
// delivery has its own attempt, and is settled by its own outcome.
import type { Delivery } from './delivery.js';
import type { OptionChecker } from './options.js';
import type { Outcome } from './outcome.js';

/** When a batch starts: at the first limit that is reached. */
export interface BatchOptions {
  /**
   * Deliveries in a batch, at most. Up to `concurrency` × `maxMessages` deliveries are taken from the broker at a time; brokers
   * stop at 50,000 unacknowledged ones of a Shared or Key_Shared consumer. @default 100
   */
  readonly maxMessages?: number | undefined;
  /**
   * Milliseconds that the first delivery of a batch waits for others; under `ordering` a key with messages one after the
   * other waits for each. A batch also starts when the runtime drains. 0 takes what the client has at that moment.
   * @default 100, as Pulsar's own clients in their batchReceive
   */
  readonly maxWaitMs?: number | undefined;
  /** Payload bytes in a batch, at most; a larger message is a batch by itself. @default 10 MiB, as Pulsar's own clients */
  readonly maxBytes?: number | undefined;
}

/** The limits of a batch handler, all of them. */
export interface BatchLimits {
  readonly maxMessages: number;
  readonly maxWaitMs: number;
  readonly maxBytes: number;
}

export const DEFAULT_BATCH_LIMITS: BatchLimits = { maxMessages: 100, maxWaitMs: 100, maxBytes: 10 * 1024 * 1024 };

/** One outcome for every delivery of the batch, or one for each, in the order of the deliveries. */
export type BatchOutcome = Outcome | readonly Outcome[];

/**
 * A batch handler's function. An outcome for all must not carry messages: they would be published once per delivery.
 * Deliveries without an outcome of their own are retried, all of them where there are more outcomes than deliveries; what is
 * thrown is the error of each delivery.
 */
export type BatchHandlerFunction<P> = (deliveries: readonly Delivery<P>[]) => BatchOutcome | Promise<BatchOutcome>;

export function resolveBatchOptions({ maxMessages, maxWaitMs, maxBytes }: BatchOptions): BatchLimits {
  return {
    maxMessages: maxMessages ?? DEFAULT_BATCH_LIMITS.maxMessages,
    maxWaitMs: maxWaitMs ?? DEFAULT_BATCH_LIMITS.maxWaitMs,
    maxBytes: maxBytes ?? DEFAULT_BATCH_LIMITS.maxBytes,
  };
}

export function checkBatchOptions(batch: unknown, check: OptionChecker): void {
  if (batch === undefined || !check.object('batch', batch, '{}, which takes the defaults')) return;
  check.unknownOptions(batch, Object.keys(DEFAULT_BATCH_LIMITS), 'batch.');
  check.positiveInteger('batch.maxMessages', batch['maxMessages']);
  check.durationMs('batch.maxWaitMs', batch['maxWaitMs']);
  check.positiveInteger('batch.maxBytes', batch['maxBytes']);
}
