// Publishes dead letters and waits for their receipts: only then may the Settler acknowledge the original. A dead
// letter that cannot be published is said loudly, and its message stays, unless the handler decided otherwise.
import { deadLetterMessage } from '../core/dead-letter.js';
import { isClosed, toError } from '../core/errors.js';
import type { EncodedMessage } from '../core/message.js';
import type { DeadLetterSettlement } from '../core/settlement.js';
import type { Clock } from '../ports/clock.js';
import type { LogFields, Logger } from '../ports/logger.js';
import type { Environment } from '../system/environment.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import type { PendingPublish, PendingSettlement } from './pending-settlement.js';
import type { PortCalls } from './port-calls.js';
import type { PublishFailure, Publishers } from './publishers.js';
import type { TelemetryHost } from './telemetry-host.js';

export interface DeadLetterPublisherOptions {
  readonly plan: HandlerPlan;
  readonly publishers: Publishers;
  readonly calls: PortCalls;
  readonly fullName: (name: string) => string;
  readonly telemetry: TelemetryHost;
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

  /** Undefined when the original may be acknowledged: its dead letter has a receipt, or the handler dealt with it. */
  async publish(
    record: DeliveryRecord,
    settlement: DeadLetterSettlement,
    pending: PendingSettlement,
  ): Promise<PublishFailure | undefined> {
    const topic = this.#options.plan.deadLetterTopic(record.originTopic);
    pending.publishes ??= [this.#publishTo(topic, this.#message(record, settlement))];
    const [letter] = pending.publishes;
    if (letter === undefined || letter.receipt !== undefined) return undefined;
    const failure = await this.#options.publishers.publishPlain(letter, pending.observer);
    this.#failing =
      failure === undefined ? undefined : `dead letters cannot be published to ${topic}: ${failure.error.message}`;
    if (failure === undefined) return undefined;
    if (!isClosed(failure.error)) this.#logFailure(record, settlement, pending, topic, failure);
    if (failure.kind !== 'refused') return failure;
    const left = await this.#refused(record, settlement, pending, failure);
    // Dealt with as the handler decided: nothing is kept for it.
    if (left === undefined) this.#failing = undefined;
    return left;
  }

  /** What the handler wants done with a dead letter that can never be published as it is. */
  async #refused(
    record: DeliveryRecord,
    { cause }: DeadLetterSettlement,
    pending: PendingSettlement,
    failure: PublishFailure,
  ): Promise<PublishFailure | undefined> {
    const [letter] = pending.publishes ?? [];
    if (letter === undefined) return failure;
    const { topic, message } = letter;
    const { plan, logger, publishers, calls, fullName } = this.#options;
    const { originId } = record;
    const said = this.#lineFields(record, pending, topic);
    const rule = plan.onDeadLetterRefused;
    const decide = typeof rule === 'function' ? rule : () => rule;
    try {
      const refusal = { topic, message, cause, error: failure.error, originId };
      const decision = await calls.run('onDeadLetterRefused', async () => decide(refusal));
      if (decision === 'hold') return failure;
      if (decision === 'acknowledge') {
        logger.error('a refused dead letter is acknowledged, as "onDeadLetterRefused" decided', said);
        return undefined;
      }
      const fallback = this.#publishTo(fullName(decision.fallbackTopic), message);
      const second = await publishers.publishPlain(fallback, pending.observer);
      if (second !== undefined) throw second.error;
      // Should the acknowledgement fail, a repeat finds this one published.
      pending.publishes = [fallback];
      logger.error('a refused dead letter went to the fallback topic', { ...said, fallbackTopic: fallback.topic });
      return undefined;
    } catch (error) {
      logger.error('"onDeadLetterRefused" did not help; the message is kept', { ...said, error: toError(error) });
      return failure;
    }
  }

  #publishTo(topic: string, message: EncodedMessage): PendingPublish {
    const initialSubscription = this.#options.plan.deadLetterSubscription;
    const fresh = { sequenceId: undefined, receipt: undefined };
    return { kind: 'dead-letter', topic, message, initialSubscription, ...fresh };
  }

  #logFailure(
    record: DeliveryRecord,
    { cause }: DeadLetterSettlement,
    pending: PendingSettlement,
    topic: string,
    { kind, error }: PublishFailure,
  ): void {
    const tries = pending.failures + 1;
    const fields = { ...this.#lineFields(record, pending, topic), cause, tries, forGood: kind === 'refused' };
    this.#options.logger.error('dead letter not published; the message is kept and it is tried again', {
      ...fields,
      error,
    });
  }

  #lineFields(record: DeliveryRecord, { observer }: PendingSettlement, deadLetterTopic: string): LogFields {
    const { plan, telemetry } = this.#options;
    return { ...record.lineFields(plan.name), ...telemetry.logFields(observer), deadLetterTopic };
  }

  #message(record: DeliveryRecord, { cause, failure }: DeadLetterSettlement): EncodedMessage {
    const { plan, clock, environment, maxMessageBytes } = this.#options;
    const now = clock.now();
    return deadLetterMessage(record.message, {
      originTopic: record.originTopic,
      originId: record.originId,
      cause,
      failure,
      handler: plan.name,
      subscription: plan.spec.subscription,
      // What killed its process is not run once more to be given up.
      attempt: cause === 'process-died' ? record.attempt - 1 : record.attempt,
      firstFailureMs: record.history.firstFailureMs ?? now,
      lastFailureMs: now,
      host: environment.host,
      processId: environment.processId,
      redact: plan.redact,
      maxMessageBytes,
    });
  }
}
