// Takes one delivery from its run to its disposition: the run is written down where there is an AttemptStore, it is
// watched by the ack timeout, the handler runs, and the Settler settles what it said. It never rejects.
import { toError } from '../core/errors.js';
import type { Outcome } from '../core/outcome.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { AckTimeoutTracker } from '../redelivery/ack-timeout-tracker.js';
import type { DeliveryRecord, GivenUp } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { Dispatcher, RunResult } from './dispatcher.js';
import { NO_FAILURES } from './failure-histories.js';
import type { HandlerPlan } from './handler-plan.js';
import type { RecordedRuns } from './recorded-runs.js';
import type { Disposition, Settler } from './settler.js';
import { NOT_NOW } from './settler.js';
import type { TelemetryHost } from './telemetry-host.js';

/** After an error that no rule foresees: the message stays, and the log is not flooded. */
const AFTER_FAULT_MS = 60_000;

export interface DeliveryRunnerOptions {
  readonly plan: HandlerPlan;
  readonly registry: DeliveryRegistry;
  readonly dispatcher: Dispatcher;
  readonly settler: Settler;
  /** Asks back what runs for too long; undefined without `ackTimeoutMs`. */
  readonly ackTimeouts: AckTimeoutTracker | undefined;
  /** Writes attempts down; undefined without an AttemptStore. */
  readonly recordedRuns: RecordedRuns | undefined;
  readonly telemetry: TelemetryHost;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with what the handler said, before it is settled. */
  readonly onOutcome: (record: DeliveryRecord, outcome: Outcome) => void;
}

export class DeliveryRunner {
  readonly #options: DeliveryRunnerOptions;
  #lastRunMs: number | undefined;

  constructor(options: DeliveryRunnerOptions) {
    this.#options = options;
  }

  /** When the last run started, epoch milliseconds; undefined before the first. */
  get lastRunMs(): number | undefined {
    return this.#lastRunMs;
  }

  run(record: DeliveryRecord): Promise<Disposition> {
    const { recordedRuns, clock } = this.#options;
    record.begin(clock.now());
    const ending =
      recordedRuns === undefined
        ? this.#run(record)
        : recordedRuns.run(
            record,
            () => this.#run(record),
            (outcome) => this.#settleWithoutRun(record, outcome),
          );
    return ending.catch((error: unknown) => this.#fault(record, error));
  }

  /** Goes on with a settlement whose call failed. */
  resume(record: DeliveryRecord): Promise<Disposition> {
    return this.#settleNow(record, (settler) => settler.resume(record));
  }

  /** A person gives up what waited for that decision. */
  giveUp(record: DeliveryRecord, givenUp: GivenUp): Promise<Disposition> {
    return this.#settleNow(record, (settler) => settler.giveUp(record, givenUp));
  }

  /** What waited for a person begins anew: nothing of it has been tried yet. */
  async forgetAttempts(record: DeliveryRecord): Promise<void> {
    record.givenUp = undefined;
    record.dueMs = 0;
    record.history = { ...NO_FAILURES, uncounted: record.message.redeliveryCount };
    await this.#options.recordedRuns?.forgetAttempts(record);
  }

  /** A settlement that was not made goes on elsewhere, or here with another copy: who observed its run learns no more. */
  letGo(record: DeliveryRecord): void {
    const { pending } = record;
    if (pending === undefined) return;
    this.#options.telemetry.dropped(pending.observer);
    record.pending = { ...pending, observer: undefined };
  }

  /** Outside a run; how it ends is written down all the same. */
  #settleNow(record: DeliveryRecord, settle: (settler: Settler) => Promise<Disposition>): Promise<Disposition> {
    const { settler, recordedRuns, clock } = this.#options;
    record.begin(clock.now());
    const ending = settle(settler);
    const recorded = recordedRuns === undefined ? ending : recordedRuns.ending(record, ending);
    return recorded.catch((error: unknown) => this.#fault(record, error));
  }

  #run(record: DeliveryRecord): Promise<Disposition> {
    const { dispatcher, ackTimeouts, clock, plan } = this.#options;
    this.#lastRunMs = record.startedMs = clock.now();
    const watched = record.message;
    ackTimeouts?.add(watched);
    let observed = plan.batch === undefined;
    // While it waits for its batch it does not run yet.
    const onCollecting = (collecting: boolean): void => {
      record.startedMs = clock.now();
      observed = !collecting;
      if (collecting) ackTimeouts?.remove(watched.id);
      else ackTimeouts?.add(watched);
    };
    try {
      const outcome = dispatcher.run(record, plan.batch && onCollecting);
      if (outcome instanceof Promise) {
        return outcome
          .finally(() => ackTimeouts?.remove(watched.id))
          .then((ended) => this.#settle(record, ended, observed));
      }
      ackTimeouts?.remove(watched.id);
      return this.#settle(record, outcome, observed);
    } catch (error) {
      return Promise.reject(toError(error));
    }
  }

  /** @param observed false for a delivery that has its outcome before its batch has started. */
  #settle(record: DeliveryRecord, result: RunResult, observed: boolean): Promise<Disposition> {
    const { settler, onOutcome, telemetry, plan } = this.#options;
    if (result === 'put-off' || result === 'cut-short') {
      telemetry.dropped(record.observer);
      return Promise.resolve(result === 'put-off' ? NOT_NOW : this.#cutShort(record));
    }
    if (!observed) record.observer = telemetry.startRun(plan, record);
    onOutcome(record, result);
    return settler.settle(record, result);
  }

  /** Nobody observes it: there is no run. */
  #settleWithoutRun(record: DeliveryRecord, outcome: Outcome): Promise<Disposition> {
    const { settler, onOutcome, clock } = this.#options;
    record.startedMs = clock.now();
    record.observer = undefined;
    onOutcome(record, outcome);
    return settler.settle(record, outcome);
  }

  /** No outcome, no attempt spent: another process takes it. */
  #cutShort(record: DeliveryRecord): Disposition {
    const { registry, logger, plan, telemetry } = this.#options;
    logger.info('delivery given back: the drain interrupted its run', {
      ...record.lineFields(plan.name),
      ...telemetry.logFields(record.observer),
    });
    registry.giveBack(record);
    return { kind: 'left', fatal: undefined };
  }

  /** A bug of ours must cost time, not a message: it is kept and run again. */
  #fault(record: DeliveryRecord, error: unknown): Disposition {
    const { logger, plan, telemetry } = this.#options;
    telemetry.dropped(record.pending?.observer ?? record.observer);
    logger.error('settling failed in a way it must not; the message is kept', {
      ...record.lineFields(plan.name),
      error: toError(error),
    });
    return { kind: 'keep', delayMs: AFTER_FAULT_MS, outage: undefined };
  }
}
