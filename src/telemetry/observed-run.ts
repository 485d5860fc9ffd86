// One run as the runtime reports it, given on to its numbers and its span, either of which may be absent. The numbers
// first: a span processor that throws must not cost them.
import type { LogFields } from '../ports/logger.js';
import type {
  BatchObserver,
  CallObserver,
  RunObserver,
  RunStart,
  SettlementReport,
  TransactionCall,
} from '../ports/telemetry.js';
import type { CallSpan } from './call-span.js';
import { errorTypeOf } from './failure-facts.js';
import type { RunMeter } from './metering.js';
import type { ProcessSpan } from './process-span.js';

/** What becomes of the calls that settle a run. */
export interface SettlingCalls {
  /** Undefined where nobody asks. */
  readonly acknowledge: ((run: ObservedRun) => CallObserver | undefined) | undefined;
  readonly transaction: (run: ObservedRun, call: TransactionCall) => CallObserver;
}

export class ObservedRun implements RunObserver {
  readonly start: RunStart;
  readonly span: ProcessSpan | undefined;
  readonly meter: RunMeter | undefined;
  readonly #calls: SettlingCalls;

  constructor(start: RunStart, span: ProcessSpan | undefined, meter: RunMeter | undefined, calls: SettlingCalls) {
    this.start = start;
    this.span = span;
    this.meter = meter;
    this.#calls = calls;
  }

  get logFields(): LogFields | undefined {
    return this.span?.logFields;
  }

  within<T>(run: () => T): T {
    return this.span === undefined ? run() : this.span.within(run);
  }

  startAcknowledge(): CallObserver | undefined {
    return this.#calls.acknowledge?.(this);
  }

  startTransaction(call: TransactionCall): CallObserver {
    return this.#calls.transaction(this, call);
  }

  settled(report: SettlementReport): void {
    const errorType = errorTypeOf(report);
    this.meter?.ended(errorType);
    this.span?.settled(report, errorType);
  }

  settlementFailed(call: string, error: Error, report: SettlementReport): void {
    const errorType = errorTypeOf(report);
    this.meter?.settlementFailed(call, errorType);
    this.span?.settlementFailed(call, error, report, errorType);
  }

  dropped(): void {
    this.meter?.dropped();
    this.span?.dropped();
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
