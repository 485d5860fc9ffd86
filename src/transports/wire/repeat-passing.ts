// Repeats what fails for a passing reason, with a growing wait: a broker that is not there yet, is moving a topic, or
// has too many requests. Every first attempt of the client goes through here, so all of them have one time limit.
import { exponentialBackoff } from '../../core/backoff.js';
import { TransportError } from '../../core/errors.js';
import type { ResolvedWireOptions } from './wire-options.js';

/** The wait before each further attempt; grows with `failures`, the attempts that failed so far. */
export function reconnectWaits(options: ResolvedWireOptions): (failures: number) => number {
  const { reconnectMinMs: minMs, reconnectMaxMs: maxMs, random } = options;
  const backoff = exponentialBackoff({ minMs, maxMs, jitter: 'equal' });
  return (failures) => backoff(failures - 1, random);
}

export function isFinal(error: unknown): boolean {
  return !(error instanceof TransportError && error.retriable);
}

/**
 * Attempts until one succeeds, until `operationTimeoutMs` is over, or until one fails for good.
 * @param givesUp which errors are not worth another attempt. @throws the error of the last attempt.
 */
export async function repeatPassing<T>(
  attempt: () => Promise<T>,
  options: ResolvedWireOptions,
  givesUp: (error: unknown) => boolean = isFinal,
): Promise<T> {
  const { clock, operationTimeoutMs } = options;
  const deadlineMs = clock.now() + operationTimeoutMs;
  const waits = reconnectWaits(options);
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      const waitMs = waits(failures);
      if (givesUp(error) || clock.now() + waitMs > deadlineMs) throw error;
      await new Promise<void>((resolve) => clock.setTimer(waitMs, resolve));
    }
  }
}
