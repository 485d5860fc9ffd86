// Messages that arrived and wait for `receive`, first in first out, and the one `receive` that waits for a message.
import { PulseworkError, describeValue } from './errors.js';
import type { ReceivedMessage } from './message.js';

export class ReceiveQueue {
  #items: ReceivedMessage[] = [];
  /** Items before it were taken: cutting them off in one go keeps taking O(1). */
  #head = 0;
  #waiter: ((message: ReceivedMessage | undefined) => void) | undefined;

  get hasWaiter(): boolean {
    return this.#waiter !== undefined;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(message: ReceivedMessage): void {
    this.#items.push(message);
  }

  take(): ReceivedMessage | undefined {
    const message = this.#items[this.#head];
    if (message === undefined) return undefined;
    this.#head += 1;
    if (this.#head > 1024 || this.#head === this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return message;
  }

  /** @throws PulseworkError ILLEGAL_STATE when another call waits already. */
  wait(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    if (this.#waiter !== undefined) {
      throw new PulseworkError('ILLEGAL_STATE', 'receive() is called while another receive() waits');
    }
    return new Promise((resolve) => {
      const aborted = (): void => this.answer(undefined);
      this.#waiter = (message) => {
        signal.removeEventListener('abort', aborted);
        resolve(message);
      };
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  /** Ends the waiting call, if there is one. */
  answer(message: ReceivedMessage | undefined): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.(message);
  }

  /** What of it `wanted` picks, in order. It stays. */
  pick(wanted: (message: ReceivedMessage) => boolean): ReceivedMessage[] {
    return this.#items.filter((message, at) => at >= this.#head && wanted(message));
  }

  /** Drops what `drop` says and returns it. */
  remove(drop: (message: ReceivedMessage) => boolean): ReceivedMessage[] {
    const dropped: ReceivedMessage[] = [];
    const kept: ReceivedMessage[] = [];
    for (let i = this.#head; i < this.#items.length; i++) {
      const message = this.#items[i];
      if (message !== undefined) (drop(message) ? dropped : kept).push(message);
    }
    this.#items = kept;
    this.#head = 0;
    return dropped;
  }
}

/** What is wrong with the signal of a `receive`. Any that does what an AbortSignal does will do. */
export function signalProblem(signal: unknown): PulseworkError | undefined {
  if (typeof signal === 'object' && signal !== null && 'aborted' in signal) return undefined;
  return new PulseworkError('CONFIGURATION_INVALID', `receive needs an AbortSignal, got ${describeValue(signal)}`);
}
