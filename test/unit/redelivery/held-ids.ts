// Ids and requests for the tests of the NegativeAckTracker.
import type { MessageId } from '../../../src/core/message-id.js';
import { formatMessageId } from '../../../src/core/message-id.js';
import { NegativeAckTracker } from '../../../src/redelivery/negative-ack-tracker.js';
import type { NegativeAckTrackerOptions } from '../../../src/redelivery/negative-ack-options.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

export function idOf(entryId: number, more: Partial<MessageId> = {}): MessageId {
  return { ledgerId: 1, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: 'persistent://a/b/c', ...more };
}

/** A tracker on a FakeClock; `requests` holds what was asked for: how long after the start, and which ids. */
export class TrackerBench {
  readonly clock = new FakeClock();
  readonly startMs = this.clock.now();
  readonly requests: { readonly afterMs: number; readonly ids: readonly string[] }[] = [];
  /** What the next requests answer, one each; afterwards they succeed. */
  readonly answers: (() => Promise<void>)[] = [];
  readonly tracker: NegativeAckTracker;

  constructor(options: Partial<NegativeAckTrackerOptions> = {}) {
    this.tracker = new NegativeAckTracker({
      clock: this.clock,
      redeliver: (ids) => {
        this.requests.push({ afterMs: this.clock.now() - this.startMs, ids: ids.map(formatMessageId).sort() });
        return this.answers.shift()?.() ?? Promise.resolve();
      },
      ...options,
    });
  }

  /** Holds an id until so long after the start. */
  holdUntil(afterMs: number, id: MessageId): void {
    this.tracker.add(id, this.startMs + afterMs);
  }
}

/** A promise that the test settles itself. */
export function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

export function raise(error: Error): never {
  throw error;
}

export const pending = (): Promise<void> => new Promise(() => undefined);
export const refused = (): Promise<void> => Promise.reject(new Error('no connection'));
