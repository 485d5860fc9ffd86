// Tells log, telemetry and plugins of each settlement: one structured line, one report. What observers throw is
// contained: watching a message must not change what happens to it.
import { PulseworkError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { formatMessageId } from '../core/message-id.js';
import type { Failure, Outcome } from '../core/outcome.js';
import type { Settlement } from '../core/settlement.js';
import type { Clock } from '../ports/clock.js';
import type { LogFields, Logger } from '../ports/logger.js';
import type { SettlementReport } from '../ports/telemetry.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import type { PendingSettlement } from './pending-settlement.js';
import type { PluginHost } from './plugin-host.js';
import type { TelemetryHost } from './telemetry-host.js';

export interface SettlementReporterOptions {
  readonly plan: HandlerPlan;
  readonly plugins: PluginHost;
  readonly telemetry: TelemetryHost;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called for each that follows from a run, whoever observes. */
  readonly onSettled: (settlement: Settlement) => void;
}

export class SettlementReporter {
  readonly #options: SettlementReporterOptions;

  constructor(options: SettlementReporterOptions) {
    this.#options = options;
  }

  settled(record: DeliveryRecord, pending: PendingSettlement): void {
    const { plugins, telemetry, logger, onSettled } = this.#options;
    if (pending.byPerson !== true) onSettled(pending.settlement);
    const level = levelOf(pending);
    const logged = logger.isEnabled?.(level) ?? true;
    const { observer } = pending;
    const observed = observer !== undefined || telemetry.observesSettlements || plugins.observesSettlements;
    if (!logged && !observed) return;
    const report = this.#report(record, pending);
    if (logged) this.#log(level, report, pending);
    plugins.settled(report);
    telemetry.settled(observer, report);
  }

  /** A call to the broker failed. @param delayMs when it is made again; undefined: it is not. */
  callFailed(call: string, id: MessageId, error: Error, delayMs: number | undefined, more?: LogFields): void {
    const { logger, plan } = this.#options;
    const fields = { handler: plan.name, messageId: formatMessageId(id), againInMs: delayMs, error };
    logger.warn(`${call} failed`, { ...fields, ...more });
  }

  /** A call of a settlement failed. @param delayMs when it is made again; undefined: the delivery comes again instead. */
  settlementFailed(
    record: DeliveryRecord,
    pending: PendingSettlement,
    call: string,
    error: Error,
    delayMs: number | undefined,
  ): void {
    const { observer } = pending;
    const more = { ...record.lineFields(this.#options.plan.name), ...this.#options.telemetry.logFields(observer) };
    this.callFailed(call, record.message.id, error, delayMs, more);
    if (observer === undefined) return;
    this.#options.telemetry.settlementFailed(observer, call, error, this.#report(record, pending));
  }

  policyFailed(record: DeliveryRecord, error: Error): void {
    const { logger, plan } = this.#options;
    logger.error('the redelivery policy failed; the default backoff is used', {
      ...record.lineFields(plan.name),
      error,
    });
  }

  #report(record: DeliveryRecord, { outcome, settlement, startedMs }: PendingSettlement): SettlementReport {
    const { plan, clock } = this.#options;
    const givesUp = settlement.kind === 'dead-letter' || settlement.kind === 'skip' || settlement.kind === 'block';
    const redeliver = settlement.kind === 'redeliver' ? settlement : undefined;
    return {
      handler: plan.name,
      subscription: plan.spec.subscription,
      topic: record.originTopic,
      topicTemplate: plan.topicTemplate,
      id: record.message.id,
      key: record.message.key,
      properties: record.message.properties,
      attempt: record.attempt,
      outcome: outcome.kind,
      settlement: settlement.kind,
      strategy: redeliver?.strategy,
      delayMs: redeliver?.delayMs,
      cause: givesUp ? settlement.cause : undefined,
      failure: failureOf(outcome),
      durationMs: clock.now() - startedMs,
    };
  }

  #log(level: Level, report: SettlementReport, { observer }: PendingSettlement): void {
    // Keys and properties are the users' data: they go to observers, not into every log line.
    const { failure, id, key, properties, ...rest } = report;
    const fields: LogFields = {
      ...rest,
      messageId: formatMessageId(id),
      reason: failure?.reason,
      error: failure?.error,
      ...this.#options.telemetry.logFields(observer),
    };
    this.#options.logger[level](LINES[report.settlement], fields);
  }
}

type Level = 'debug' | 'info' | 'error';

const LINES: Readonly<Record<SettlementReport['settlement'], string>> = {
  acknowledge: 'delivery acknowledged',
  redeliver: 'delivery will run again',
  'dead-letter': 'delivery dead-lettered',
  skip: 'delivery given up and acknowledged without a dead letter',
  block: 'delivery given up and kept',
  leave: 'delivery left unsettled',
};

/** A fault of the program is an error however it ends; a message's own failure is one only when it is final. */
function levelOf({ settlement: { kind }, outcome }: PendingSettlement): Level {
  if (isProgramFault(failureOf(outcome)?.error)) return 'error';
  if (kind === 'redeliver' || outcome.kind === 'skip') return 'info';
  return kind === 'acknowledge' ? 'debug' : 'error';
}

const PROGRAM_FAULTS: readonly unknown[] = [
  'HANDLER_RETURNED_NO_OUTCOME',
  'POLICY_FAILED',
  'HANDLER_TIMED_OUT',
  // A follow-up that its schema, the broker or `publishes` refuses is refused again the next time.
  'PUBLISH_REFUSED',
];

function isProgramFault(error: Error | undefined): boolean {
  if (error instanceof PulseworkError) return PROGRAM_FAULTS.includes(error.code);
  return (
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof RangeError ||
    error instanceof SyntaxError
  );
}

function failureOf(outcome: Outcome): Failure | undefined {
  return outcome.kind === 'success' ? undefined : outcome.failure;
}
