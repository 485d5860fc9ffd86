// Copies of messages that were acknowledged: the broker missed it, so it is told again, as often as that takes. Over a connection
// that stays it does not send them once more, and what it still waits for keeps the key from every other process (K-10).
import { exponentialBackoff } from '../core/backoff.js';
import { isClosed, toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { formatMessageId } from '../core/message-id.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Subscription } from '../ports/transport.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { PortCalls } from './port-calls.js';
import type { SettlementReporter } from './settlement-reporter.js';

/** As between the repeats of other settlements. */
const REPEAT_BACKOFF = exponentialBackoff({ minMs: 1_000, maxMs: 60_000 });

export interface CopyAcknowledgementsOptions {
  readonly subscription: Subscription;
  readonly registry: Pick<DeliveryRegistry, 'isUnsettled'>;
  readonly calls: PortCalls;
  readonly reporter: SettlementReporter;
  readonly clock: Clock;
  readonly random: () => number;
}

export class CopyAcknowledgements {
  readonly #options: CopyAcknowledgementsOptions;
  /** By message: the newest copy's. */
  readonly #repeats = new Map<string, Timer>();
  #closed = false;

  constructor(options: CopyAcknowledgementsOptions) {
    this.#options = options;
  }

  add(id: MessageId): void {
    this.#repeats.get(keyOf(id))?.cancel();
    void this.#acknowledge(id, 0);
  }

  close(): void {
    this.#closed = true;
    for (const repeat of this.#repeats.values()) repeat.cancel();
    this.#repeats.clear();
  }

  async #acknowledge(id: MessageId, failures: number): Promise<void> {
    const { calls, subscription, reporter } = this.#options;
    try {
      await calls.run('acknowledging a copy', () => subscription.acknowledge([id]));
    } catch (error) {
      reporter.callFailed('acknowledging a copy', id, toError(error), undefined);
      if (!this.#closed && !isClosed(error)) this.#repeat(id, failures);
    }
  }

  #repeat(id: MessageId, failures: number): void {
    const { clock, random, registry } = this.#options;
    const repeat = clock.setTimer(REPEAT_BACKOFF(failures, random), () => {
      this.#repeats.delete(keyOf(id));
      // Somebody sought back: it is to run again, and may fail.
      if (!registry.isUnsettled(id)) void this.#acknowledge(id, failures + 1);
    });
    this.#repeats.set(keyOf(id), repeat);
  }
}

function keyOf(id: MessageId): string {
  return `${id.topic} ${formatMessageId(id)}`;
}
