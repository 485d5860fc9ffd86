// What follows when `receive` itself failed: it is said, and tried again after a while, until a message or the end comes.
import { isClosed, toError } from '../core/errors.js';
import type { ReceivedMessage } from '../core/message.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Subscription } from '../ports/transport.js';

/** Long enough not to spin, short enough to go on soon after a reconnect. */
const RECEIVE_AGAIN_MS = 1_000;

export interface ReceiveContext {
  readonly subscription: Pick<Subscription, 'receive'>;
  readonly signal: AbortSignal;
  /** The handler's name. */
  readonly handler: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** @returns the next message; undefined once the subscription is closed or `signal` aborted. */
export async function receiveAgain(failure: unknown, context: ReceiveContext): Promise<ReceivedMessage | undefined> {
  const { subscription, signal, handler, logger } = context;
  let error = toError(failure);
  while (!signal.aborted && !isClosed(error)) {
    logger.warn('receiving failed', { handler, againInMs: RECEIVE_AGAIN_MS, error });
    await waited(context);
    try {
      return await subscription.receive(signal);
    } catch (again) {
      error = toError(again);
    }
  }
  return undefined;
}

function waited({ clock, signal }: ReceiveContext): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(RECEIVE_AGAIN_MS, () => {
      signal.removeEventListener('abort', ended);
      resolve();
    });
    const ended = (): void => {
      timer.cancel();
      resolve();
    };
    signal.addEventListener('abort', ended, { once: true });
  });
}
