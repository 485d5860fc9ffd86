// Telemetry that writes down what it is told: for tests of handlers, and for tests that each run ends exactly once.
import { formatMessageId } from '../core/message-id.js';
import type { RuntimeView } from '../ports/runtime-view.js';
import type {
  BatchObserver,
  BatchStart,
  CallObserver,
  PublishKind,
  PublishObserver,
  PublishStart,
  RunObserver,
  RunStart,
  SettlementReport,
  Telemetry,
  TransactionCall,
} from '../ports/telemetry.js';

/** One run, as it was told. */
export interface RecordedRun {
  readonly start: RunStart;
  /** `running` until it was settled or dropped. */
  readonly end: 'running' | 'settled' | 'dropped';
  readonly report: SettlementReport | undefined;
  /** Calls of its settlement that failed. */
  readonly failedCalls: readonly string[];
  /** What was asked of the coordinator of its transactions: `begin`, `commit`, `abort`, with ` failed` behind those that did. */
  readonly transactionCalls: readonly string[];
  /** What followed from it, by kind and topic. */
  readonly published: readonly RecordedPublish[];
}

export interface RecordedPublish {
  readonly kind: PublishKind;
  readonly topic: string;
  readonly end: 'sending' | 'stored' | 'failed';
}

export interface RecordingTelemetryOptions {
  /** Whether published messages carry the property `recorded-run`: id and attempt of their run, or `outside`. @default false */
  readonly marksMessages?: boolean | undefined;
}

export class RecordingTelemetry implements Telemetry {
  readonly runs: RecordedRun[] = [];
  /** What was published outside handlers. */
  readonly published: RecordedPublish[] = [];
  readonly reports: SettlementReport[] = [];
  /** Deliveries of each batch. */
  readonly batches: number[] = [];
  /** What was told too often, too late or to nobody: empty where the runtime keeps the contract. */
  readonly problems: string[] = [];
  readonly #marksMessages: boolean;
  #runtime: RuntimeView | undefined;
  /** Runtimes that are observed now. */
  #started = 0;

  constructor({ marksMessages = false }: RecordingTelemetryOptions = {}) {
    this.#marksMessages = marksMessages;
  }

  /** The runtime that was observed last. */
  get runtime(): RuntimeView | undefined {
    return this.#runtime;
  }

  /** Runs that were neither settled nor dropped. */
  get open(): readonly RecordedRun[] {
    return this.runs.filter(({ end }) => end === 'running');
  }

  onStart(runtime: RuntimeView): void {
    this.#runtime = runtime;
    this.#started++;
  }

  startRun(start: RunStart): RunObserver {
    this.#check(`a run of ${start.handler}`);
    const run = new Run(start, this.problems);
    this.runs.push(run.record);
    return run;
  }

  startBatch({ deliveries }: BatchStart): BatchObserver {
    this.batches.push(deliveries.length);
    let ended = false;
    return {
      runs: deliveries.map((start) => this.startRun(start)),
      within: (run) => run(),
      ended: () => {
        if (ended) this.problems.push('a batch ended twice');
        ended = true;
      },
    };
  }

  startPublish({ kind, topic, message, run }: PublishStart): PublishObserver {
    this.#check(`a publish to ${topic}`);
    const published: { -readonly [K in keyof RecordedPublish]: RecordedPublish[K] } = { kind, topic, end: 'sending' };
    const of = run instanceof Run ? run.record : undefined;
    (of?.published ?? this.published).push(published);
    const end = (how: RecordedPublish['end']): void => {
      if (published.end !== 'sending') this.problems.push(`a publish to ${topic} ended twice`);
      published.end = how;
    };
    const runId = of === undefined ? 'outside' : `${formatMessageId(of.start.id)}#${of.start.attempt}`;
    return {
      properties: this.#marksMessages ? { ...message.properties, 'recorded-run': runId } : message.properties,
      done: () => end('stored'),
      failed: () => end('failed'),
    };
  }

  onSettled(report: SettlementReport): void {
    this.reports.push(report);
  }

  onClose(): void {
    this.#started--;
  }

  #check(what: string): void {
    if (this.#started === 0) this.problems.push(`${what} outside of the runtime's life`);
  }
}

class Run implements RunObserver {
  readonly record: { -readonly [K in keyof RecordedRun]: RecordedRun[K] } & {
    readonly failedCalls: string[];
    readonly transactionCalls: string[];
    readonly published: RecordedPublish[];
  };
  readonly #problems: string[];

  constructor(start: RunStart, problems: string[]) {
    this.record = { start, end: 'running', report: undefined, failedCalls: [], transactionCalls: [], published: [] };
    this.#problems = problems;
  }

  within<T>(run: () => T): T {
    return run();
  }

  startAcknowledge(): CallObserver {
    let ended = false;
    const end = (): void => {
      if (ended) this.#problems.push('an acknowledgement ended twice');
      ended = true;
    };
    return { done: end, failed: end };
  }

  startTransaction(call: TransactionCall): CallObserver {
    const ends: string[] = [];
    const end = (how: string): void => {
      if (ends.push(how) > 1) this.#problems.push(`${call} of a transaction ended twice`);
      this.record.transactionCalls.push(how);
    };
    return { done: () => end(call), failed: () => end(`${call} failed`) };
  }

  settled(report: SettlementReport): void {
    this.#end('settled');
    this.record.report = report;
  }

  settlementFailed(call: string): void {
    if (this.record.end !== 'running') this.#problems.push(`${call} failed after the run was ${this.record.end}`);
    this.record.failedCalls.push(call);
  }

  dropped(): void {
    this.#end('dropped');
  }

  #end(how: 'settled' | 'dropped'): void {
    const { start, end } = this.record;
    if (end !== 'running')
      this.#problems.push(`run ${start.attempt} of ${formatMessageId(start.id)}: ${end}, then ${how}`);
    this.record.end = how;
  }
}
