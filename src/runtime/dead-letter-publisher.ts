// Publishes dead letters and waits for their receipts: only then may the Settler acknowledge the original. A dead
// letter that cannot be published is said loudly, and its message stays.
import { isClosed } from '../core/errors.js';
import { deadLetterMessage } from '../core/dead-letter.js';
import { formatMessageId } from '../core/message-id.js';
import type { DeadLetterSettlement } from '../core/settlement.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Environment } from '../system/environment.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import type { PendingSettlement } from './pending-settlement.js';
import type { PublishFailure, Publishers } from './publishers.js';

export interface DeadLetterPublisherOptions {
  readonly plan: HandlerPlan;
  readonly publishers: Publishers;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: Environment;
  readonly maxMessageBytes: number;
}

export class DeadLetterPublisher {
  readonly #options: DeadLetterPublisherOptions;
  #failing: string | undefined;

  constructor(options: DeadLetterPublisherOptions) {
    this.#options = options;
  }

  /** Why the last dead letter could not be published; undefined when it could. */
  get degraded(): string | undefined {
    return this.#failing;
  }

  async publish(
    record: DeliveryRecord,
    settlement: DeadLetterSettlement,
    pending: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    const { plan, publishers, logger } = this.#options;
    const topic = plan.deadLetterTopic(record.originTopic);
    pending.publishes ??= [
      { topic, message: this.#message(record, settlement), sequenceId: undefined, receipt: undefined },
    ];
    const [publish] = pending.publishes;
    if (publish === undefined || publish.receipt !== undefined) return undefined;
    const failure = await publishers.publishPlain(publish);
    this.#failing =
      failure === undefined ? undefined : `dead letters cannot be published to ${topic}: ${failure.error.message}`;
    if (failure !== undefined && !isClosed(failure.error)) {
      logger.error('dead letter not published; the message is kept and it is tried again', {
        handler: plan.name,
        topic,
        messageId: formatMessageId(record.message.id),
        cause: settlement.cause,
        tries: pending.failures + 1,
        forGood: failure.kind === 'refused',
        error: failure.error,
      });
    }
    return failure;
  }

  #message(record: DeliveryRecord, { cause, failure }: DeadLetterSettlement): ReturnType<typeof deadLetterMessage> {
    const { plan, clock, environment, maxMessageBytes } = this.#options;
    const now = clock.now();
    return deadLetterMessage(record.message, {
      originTopic: record.originTopic,
      originId: record.originId,
      cause,
      failure,
      handler: plan.name,
      subscription: plan.spec.subscription,
      attempt: record.attempt,
      firstFailureMs: record.history.firstFailureMs ?? now,
      lastFailureMs: now,
      host: environment.host,
      processId: environment.processId,
      redact: plan.redact,
      maxMessageBytes,
    });
  }
}
