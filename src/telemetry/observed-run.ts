// One run as the runtime reports it, given on to its span and its numbers, either of which may be absent.
import type { LogFields } from '../ports/logger.js';
import type { BatchObserver, CallObserver, RunObserver, RunStart, SettlementReport } from '../ports/telemetry.js';
import type { CallSpan } from './call-span.js';
import { errorTypeOf } from './failure-facts.js';
import type { RunMeter } from './metering.js';
import type { ProcessSpan } from './process-span.js';

/** What becomes of acknowledgements; undefined where nobody asks. */
export type StartAcknowledge = (run: ObservedRun) => CallObserver | undefined;

export class ObservedRun implements RunObserver {
  readonly start: RunStart;
  readonly span: ProcessSpan | undefined;
  readonly meter: RunMeter | undefined;
  readonly #acknowledge: StartAcknowledge | undefined;

  constructor(
    start: RunStart,
    span: ProcessSpan | undefined,
    meter: RunMeter | undefined,
    acknowledge: StartAcknowledge | undefined,
  ) {
    this.start = start;
    this.span = span;
    this.meter = meter;
    this.#acknowledge = acknowledge;
  }

  get logFields(): LogFields | undefined {
    return this.span?.logFields;
  }

  within<T>(run: () => T): T {
    return this.span === undefined ? run() : this.span.within(run);
  }

  startAcknowledge(): CallObserver | undefined {
    return this.#acknowledge?.(this);
  }

  settled(report: SettlementReport): void {
    const errorType = errorTypeOf(report);
    this.span?.settled(report, errorType);
    this.meter?.ended(errorType);
  }

  settlementFailed(call: string, error: Error, report: SettlementReport): void {
    const errorType = errorTypeOf(report);
    this.span?.settlementFailed(call, error, report, errorType);
    this.meter?.settlementFailed(call, errorType);
  }

  dropped(): void {
    this.span?.dropped();
    this.meter?.dropped();
  }
}

export class ObservedBatch implements BatchObserver {
  readonly runs: readonly ObservedRun[];
  readonly #span: CallSpan | undefined;

  constructor(span: CallSpan | undefined, runs: readonly ObservedRun[]) {
    this.runs = runs;
    this.#span = span;
  }

  within<T>(run: () => T): T {
    return this.#span === undefined ? run() : this.#span.within(run);
  }

  ended(error: Error | undefined): void {
    if (error === undefined) this.#span?.done();
    else this.#span?.failed(error);
  }
}
