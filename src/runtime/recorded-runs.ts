// Writes each run down before it starts, so that its attempt survives the death of this process, and lets a message
// that may have killed an earlier one run alone. Only with an AttemptStore; its contract says what deaths mean.
import { attemptKey } from '../core/attempt-records.js';
import { toError } from '../core/errors.js';
import type { Outcome } from '../core/outcome.js';
import { processDied } from '../core/outcome.js';
import type { AttemptRecord, AttemptStore } from '../ports/attempt-store.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import type { PortCalls } from './port-calls.js';
import type { Disposition } from './settler.js';
import { NOT_NOW } from './settler.js';
import type { Pass, SuspectGate } from './suspects.js';
import { gateOf } from './suspects.js';

/** A store that fails keeps handlers from running: long enough not to flood it, short enough to go on soon. */
const STORE_AGAIN_MS = 5_000;

export interface RecordedRunsOptions {
  readonly store: AttemptStore;
  readonly plan: HandlerPlan;
  readonly calls: PortCalls;
  readonly clock: Clock;
  readonly logger: Logger;
  /** False once the runtime drains or stands still, or the connection of the message is gone. */
  readonly mayStart: (record: DeliveryRecord) => boolean;
}

export class RecordedRuns {
  readonly #options: RecordedRunsOptions;
  readonly #gate: SuspectGate;

  constructor(options: RecordedRunsOptions) {
    this.#options = options;
    this.#gate = gateOf(options.store);
  }

  /**
   * Calls `run` once its start is written down and its turn has come; or `settle` without a run, for a message that killed
   * this process as often as it may be delivered.
   */
  async run(
    record: DeliveryRecord,
    run: () => Promise<Disposition>,
    settle: (outcome: Outcome) => Promise<Disposition>,
  ): Promise<Disposition> {
    const { store, plan, clock } = this.#options;
    const key = this.#keyOf(record);
    let known: AttemptRecord | undefined;
    try {
      const found = store.find(key);
      known = found instanceof Promise ? await this.#options.calls.run('reading an attempt', () => found) : found;
    } catch (error) {
      return this.#notRecorded(record, error);
    }
    if (known !== undefined) {
      const { attempts, notBeforeMs = 0, deaths } = known;
      if (attempts > record.history.failures) record.history = { ...record.history, failures: attempts };
      const waitMs = notBeforeMs - clock.now();
      if (waitMs > 0) return { kind: 'keep', delayMs: waitMs, outage: undefined };
      if (deaths > 0 && attempts >= plan.policy.maxDeliveries)
        return this.ending(record, settle(processDied(attempts, deaths)));
    }
    const suspect = known?.suspect ?? false;
    const pass = await new Promise<Pass>((admitted) => this.#gate.admit(key, suspect, admitted));
    try {
      return this.#options.mayStart(record) ? await this.#runRecorded(record, key, suspect, run) : NOT_NOW;
    } finally {
      pass.leave();
    }
  }

  /** Writes down how a run or its settlement ended. */
  async ending(record: DeliveryRecord, ending: Promise<Disposition>): Promise<Disposition> {
    const disposition = await ending;
    void this.#writeEnd(record, disposition);
    return disposition;
  }

  /** A person decided that it begins anew. */
  forgetAttempts(record: DeliveryRecord): Promise<void> {
    return this.#writeEnd(record, { kind: 'settled' });
  }

  async #runRecorded(
    record: DeliveryRecord,
    key: string,
    alone: boolean,
    run: () => Promise<Disposition>,
  ): Promise<Disposition> {
    const { store, calls } = this.#options;
    try {
      await calls.run('recording an attempt', () => store.begin(key, { attempt: record.attempt, alone }));
    } catch (error) {
      return this.#notRecorded(record, error);
    }
    const disposition = this.#options.mayStart(record) ? await run() : NOT_NOW;
    const written = this.#writeEnd(record, disposition);
    // Until it is written, the death of a neighbour would be blamed on it.
    if (alone) await written;
    return disposition;
  }

  /** Without its start written down the handler must not run: its death would not be counted. */
  #notRecorded(record: DeliveryRecord, error: unknown): Disposition {
    const { logger, plan, store } = this.#options;
    const fields = { ...record.lineFields(plan.name), store: store.name, againInMs: STORE_AGAIN_MS };
    logger.error('an attempt could not be recorded; the handler does not run', { ...fields, error: toError(error) });
    return { kind: 'keep', delayMs: STORE_AGAIN_MS, outage: undefined };
  }

  async #writeEnd(record: DeliveryRecord, disposition: Disposition): Promise<void> {
    const { store, logger, plan, calls } = this.#options;
    const key = this.#keyOf(record);
    const spent = attemptsSpent(record, disposition);
    const waits = disposition.kind === 'held' || disposition.kind === 'keep';
    const notBeforeMs = waits && Number.isFinite(record.dueMs) && record.dueMs > 0 ? record.dueMs : undefined;
    try {
      const end = { attempts: spent, notBeforeMs };
      await calls.run('recording the end of an attempt', () =>
        disposition.kind === 'settled' ? store.delete(key) : store.end(key, end),
      );
    } catch (error) {
      // The record stays open: should this process die, the message is suspected and runs alone once.
      const fields = { ...record.lineFields(plan.name), store: store.name, error: toError(error) };
      logger.warn('the end of an attempt could not be recorded', fields);
    }
  }

  #keyOf({ originTopic, originId }: DeliveryRecord): string {
    return attemptKey(originTopic, this.#options.plan.spec.subscription, originId);
  }
}

function attemptsSpent(record: DeliveryRecord, disposition: Disposition): number {
  if (disposition.kind === 'republished') return disposition.attempts;
  // `fatal` spends an attempt here, though nowhere else: the next process meets the same message first.
  const isFatal = disposition.kind === 'left' && disposition.fatal !== undefined;
  return isFatal ? record.attempt : record.attempt - 1;
}
