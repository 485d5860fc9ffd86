// Runs a delivery: decode, plugins, handler, and whatever comes of it as one Outcome. It never rejects: a throw, a
// time limit, a payload that cannot be read and a value that is no Outcome all have their outcome. It settles nothing.
import type { BatchHandlerFunction } from '../core/batch-handler.js';
import type { ErrorCode } from '../core/errors.js';
import { PulseworkError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { Outcome } from '../core/outcome.js';
import { retry, undecodable } from '../core/outcome.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import { withCurrentDelivery } from '../system/current-delivery.js';
import { BatchCollector } from './batch-collector.js';
import type { Deadline } from './deadlines.js';
import { Deadlines } from './deadlines.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan, PayloadReader } from './handler-plan.js';
import { HandlerRun, RunDelivery } from './handler-run.js';
import type { IdempotencyContext } from './idempotent.js';
import { OutcomeRules } from './outcome-rules.js';
import { Undecodable, isPromiseLike, readPayload } from './payload.js';
import type { PluginHost } from './plugin-host.js';
import type { TelemetryHost } from './telemetry-host.js';

/**
 * How a run ended. `cut-short`: a drain ended it before its work was done. `put-off`: it was not to start after all. Neither is a
 * failure, and neither has an outcome.
 */
export type RunResult = Outcome | 'cut-short' | 'put-off';

type SingleHandler = (delivery: Delivery) => Outcome | Promise<Outcome>;

export interface DispatcherOptions {
  readonly plan: HandlerPlan;
  readonly plugins: PluginHost;
  readonly telemetry: TelemetryHost;
  /** Whether `currentDelivery()` is to work inside handlers. */
  readonly currentDelivery: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What the handler's `idempotent` or `effects` needs for one delivery. */
  readonly idempotency: (record: DeliveryRecord) => IdempotencyContext;
  /** Whether a delivery that waited for its batch may start now. */
  readonly mayStart: (record: DeliveryRecord) => boolean;
  /** A run was given up, or one given up before has ended: how many there are now. */
  readonly onAbandoned: (count: number) => void;
}

export class Dispatcher {
  readonly #plan: HandlerPlan;
  readonly #rules: OutcomeRules;
  readonly #idempotency: DispatcherOptions['idempotency'];
  readonly #logger: Logger;
  readonly #onAbandoned: (count: number) => void;
  readonly #telemetry: TelemetryHost;
  readonly #run: (delivery: Delivery) => unknown;
  /** Undefined for a handler that takes one delivery. */
  readonly #batches: BatchCollector | undefined;
  readonly #timeouts: Deadlines | undefined;
  readonly #abandonments: Deadlines | undefined;
  readonly #running = new Set<HandlerRun>();
  #abandoned = 0;

  constructor(options: DispatcherOptions) {
    const { plan, plugins, telemetry, clock, logger, idempotency, onAbandoned } = options;
    this.#plan = plan;
    this.#rules = new OutcomeRules(plan);
    this.#idempotency = idempotency;
    this.#logger = logger;
    this.#onAbandoned = onAbandoned;
    this.#batches = newCollector(options);
    this.#telemetry = telemetry;
    const wrapped = plugins.wrapHandler(handlerOf(plan, this.#batches));
    this.#run = options.currentDelivery
      ? (delivery) => withCurrentDelivery(delivery, () => wrapped(delivery))
      : wrapped;
    if (plan.timeoutMs === undefined) return;
    this.#timeouts = new Deadlines(clock, plan.timeoutMs);
    this.#abandonments = new Deadlines(clock, plan.abandonAfterMs);
  }

  /**
   * A promise only where the schema, a plugin or the handler gave one.
   * @param onCollecting called when the delivery waits for its batch, and when that starts.
   */
  run(record: DeliveryRecord, onCollecting?: (collecting: boolean) => void): RunResult | Promise<RunResult> {
    const run = new HandlerRun();
    if (onCollecting !== undefined) run.whenCollecting(onCollecting);
    // One that waits for its batch is observed when that starts.
    const observer = this.#batches === undefined ? this.#telemetry.startRun(this.#plan, record) : undefined;
    record.observer = observer;
    let result: unknown;
    try {
      result = this.#telemetry.within(observer, () => this.#readAndHandle(record, run));
      if (!isPromiseLike(result)) return this.#rules.ofResult(result);
    } catch (error) {
      return this.#rules.ofError(error);
    }
    return this.#timeouts === undefined ? this.#finish(run, result) : this.#finishInTime(record, run, result);
  }

  /** Batches start with what they have: nothing more is to come. */
  flush(): void {
    this.#batches?.flush();
  }

  /** Tells every run to end, with `reason` on its signal. */
  interruptAll(reason: Error): void {
    for (const run of this.#running) run.interrupt(reason);
    this.#batches?.interrupt(reason);
  }

  close(): void {
    this.#batches?.close();
    this.#timeouts?.clear();
    this.#abandonments?.clear();
  }

  /** The handler's result, a promise of it, or an outcome where the payload cannot be read. Throws what they throw. */
  #readAndHandle(record: DeliveryRecord, run: HandlerRun): unknown {
    const { unreadable } = record.message;
    if (unreadable !== undefined) return undecodable(new Undecodable(unreadable).error);
    const reader = this.#readerFor(record);
    const payload = readPayload(record.message.payload, reader);
    if (isPromiseLike(payload)) return Promise.resolve(payload).then((value) => this.#handle(record, value, run));
    return this.#handle(record, payload, run);
  }

  /** A handler may name one partition as its topic. A retry letter of unknown origin is read as the first topic's. */
  #readerFor({ message, originTopic }: DeliveryRecord): PayloadReader {
    const { readers, patternReader } = this.#plan;
    const [first] = message.letter === undefined ? [] : readers.values();
    const reader = patternReader ?? readers.get(message.id.topic) ?? readers.get(originTopic) ?? first;
    if (reader === undefined) throw new Error(`no payload reader for topic ${message.id.topic}`);
    return reader;
  }

  #handle(record: DeliveryRecord, payload: unknown, run: HandlerRun): unknown {
    if (payload instanceof Undecodable) return undecodable(payload.error);
    // It was told to end while its payload was being read: there is nothing to interrupt.
    if (run.interruption !== undefined) throw run.interruption;
    run.begin();
    const delivery = new RunDelivery(record, this.#plan, payload, run);
    const guard = this.#plan.idempotent ?? this.#plan.effects;
    if (guard === undefined) return this.#run(delivery);
    // What the rules make of an error is recorded too.
    const ruled = (error: Error): Outcome | undefined => this.#rules.ruled(error);
    return guard.around(delivery, () => this.#workOf(delivery, run), { ...this.#idempotency(record), run, ruled });
  }

  /** What may be recorded: of a run that was told to end only what it has done. */
  async #workOf(delivery: Delivery, run: HandlerRun): Promise<Outcome> {
    const outcome = await this.#outcomeOf(run, () => this.#run(delivery));
    if (run.interruption !== undefined && !isDone(run, outcome)) throw run.interruption;
    return outcome;
  }

  #outcomeOf(run: HandlerRun, work: () => unknown): Promise<Outcome> {
    return this.#rules.of(work, () => run.interruption !== undefined);
  }

  async #finish(run: HandlerRun, result: PromiseLike<unknown>): Promise<RunResult> {
    this.#running.add(run);
    const outcome = await this.#outcomeOf(run, () => result);
    this.#running.delete(run);
    const done = isDone(run, outcome);
    run.end();
    if (hasCode(run.interruption, 'DELIVERY_PUT_OFF')) return 'put-off';
    return hasCode(run.interruption, 'DRAIN_DEADLINE_PASSED') && !done ? 'cut-short' : outcome;
  }

  /**
   * At the limit the signal aborts and the run counts as failed, but its outcome is given only once it has ended or
   * `abandonAfterMs` more have passed: a retry must not run beside it.
   */
  #finishInTime(record: DeliveryRecord, run: HandlerRun, result: PromiseLike<unknown>): Promise<RunResult> {
    return new Promise((resolve) => {
      let abandoned = false;
      let counted = false;
      let deadline: Deadline | undefined;
      const timedOut = (): Outcome => retry(this.#timeoutError());
      const abandon = (): void => {
        abandoned = true;
        counted = run.giveUp();
        if (counted) this.#countAbandoned(1);
        if (counted) this.#logAbandoned(record);
        this.#running.delete(run);
        resolve(timedOut());
      };
      const expired = (): void => {
        // A run that a drain has cut short is not late: it has no outcome at all.
        if (run.interruption !== undefined) return;
        run.interrupt(this.#timeoutError());
        deadline = this.#abandonments?.add(abandon) ?? deadline;
      };
      run.whenLimited((limited) => {
        deadline?.remove();
        if (limited) deadline = this.#timeouts?.add(expired);
      });
      if (run.limited) deadline = this.#timeouts?.add(expired);
      void this.#finish(run, result).then((outcome) => {
        deadline?.remove();
        const late = hasCode(run.interruption, 'HANDLER_TIMED_OUT') && !saysWhatWasLate(outcome);
        if (!abandoned) resolve(late ? timedOut() : outcome);
        else if (counted) this.#countAbandoned(-1);
      });
    });
  }

  #countAbandoned(change: 1 | -1): void {
    this.#abandoned += change;
    this.#onAbandoned(this.#abandoned);
  }

  #logAbandoned(record: DeliveryRecord): void {
    this.#logger.error('a handler did not end after its time limit and was given up; its slot is free again', {
      ...record.lineFields(this.#plan.name),
      ...this.#telemetry.logFields(record.observer),
      timeoutMs: this.#plan.timeoutMs,
      abandoned: this.#abandoned,
    });
  }

  #timeoutError(): PulseworkError {
    return new PulseworkError(
      'HANDLER_TIMED_OUT',
      `handler ${JSON.stringify(this.#plan.name)} did not end within ${this.#plan.timeoutMs ?? 0} ms`,
    );
  }
}

function newCollector(options: DispatcherOptions): BatchCollector | undefined {
  const { plan, telemetry, mayStart, clock, logger } = options;
  const { name, concurrency, batch: limits } = plan;
  if (limits === undefined) return undefined;
  const handle = plan.handle as BatchHandlerFunction<never>;
  return new BatchCollector({
    name,
    handle,
    limits,
    concurrency,
    mayStart: (delivery) => mayStart(RunDelivery.partsOf(delivery).record),
    around: (deliveries, run) => {
      const records = deliveries.map((delivery) => RunDelivery.partsOf(delivery).record);
      const runs = (): Promise<unknown> => telemetry.aroundBatch(plan, records, run);
      // It belongs to many deliveries, not to the one whose arrival started it.
      return options.currentDelivery ? withCurrentDelivery(undefined, runs) : runs();
    },
    clock,
    logger,
  });
}

/** The innermost step of a run: the handler itself, or its place in a batch. */
function handlerOf(plan: HandlerPlan, batches: BatchCollector | undefined): SingleHandler {
  if (batches === undefined) return plan.handle as SingleHandler;
  return (delivery) => {
    const { record, run } = RunDelivery.partsOf(delivery);
    return batches.join({ delivery, run, payloadBytes: record.payloadBytes });
  };
}

/** Work that was done counts, however late; anything else of a run that was told to end was only cut short. */
function isDone(run: HandlerRun, { kind }: Outcome): boolean {
  return run.begun && (kind === 'success' || kind === 'skip');
}

/** A plugin knows better than this what the time was spent on, such as a wait before the handler's turn. */
function saysWhatWasLate(result: RunResult): boolean {
  return typeof result === 'object' && result.kind === 'retry' && hasCode(result.failure.error, 'HANDLER_TIMED_OUT');
}

function hasCode(error: Error | undefined, code: ErrorCode): boolean {
  return error instanceof PulseworkError && error.code === code;
}
