// Publishes retry letters and waits for their receipts: only then may the Settler acknowledge the copy at hand.
import { retryLetterMessage } from '../core/retry-letter.js';
import type { Redeliver } from '../core/settlement.js';
import type { Clock } from '../ports/clock.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import type { PendingSettlement } from './pending-settlement.js';
import type { PublishFailure, Publishers } from './publishers.js';

export class RetryLetterPublisher {
  readonly #plan: HandlerPlan;
  readonly #publishers: Publishers;
  readonly #clock: Clock;

  constructor(plan: HandlerPlan, publishers: Publishers, clock: Clock) {
    this.#plan = plan;
    this.#publishers = publishers;
    this.#clock = clock;
  }

  /** A repeat publishes the same letter, with the same due time and sequence id. */
  async publish(
    record: DeliveryRecord,
    settlement: Redeliver,
    pending: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    const { retry } = this.#plan;
    if (retry === undefined) throw new Error(`handler ${this.#plan.name} has no retry letter topic`);
    pending.publishes ??= [
      {
        kind: 'retry-letter',
        topic: retry.topicFor(record.originTopic),
        message: this.#letter(record, settlement),
        sequenceId: undefined,
        receipt: undefined,
      },
    ];
    const [publish] = pending.publishes;
    if (publish === undefined || publish.receipt !== undefined) return undefined;
    return this.#publishers.publishPlain(publish, pending.observer);
  }

  #letter(record: DeliveryRecord, { delayMs, spendsAttempt }: Redeliver): ReturnType<typeof retryLetterMessage> {
    const now = this.#clock.now();
    const { message, attempt, history } = record;
    return retryLetterMessage(message, message.letter, {
      attempts: spendsAttempt ? attempt : attempt - 1,
      delayMs,
      now,
      firstFailureMs: history.firstFailureMs ?? (spendsAttempt ? now : undefined),
    });
  }
}
