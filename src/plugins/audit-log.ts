// One record for each settlement, given to a writer of the user: who did what with which message, and why. A writer that
// is slow, fails or hangs holds up no message; what it costs then is records, and that is said.
import type { DeadLetterCause } from '../core/dead-letter.js';
import { toError } from '../core/errors.js';
import { formatMessageId } from '../core/message-id.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { OutcomeKind } from '../core/outcome.js';
import type { Redact } from '../core/redaction.js';
import { checkRedact, redactText } from '../core/redaction.js';
import type { RedeliveryStrategy, Settlement } from '../core/settlement.js';
import type { Plugin } from '../ports/plugin.js';
import type { RuntimeControl } from '../ports/runtime-view.js';
import type { SettlementReport } from '../ports/telemetry.js';

/** Plain values, ready for JSON. Keys and properties are the users' data and are not among them. */
export interface AuditRecord {
  /** When it was settled, epoch milliseconds. */
  readonly settledMs: number;
  readonly handler: string;
  readonly subscription: string;
  /** Full name, without a partition. */
  readonly topic: string;
  /** As text, `ledger:entry:partition[:batch]`. */
  readonly messageId: string;
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly settlement: Settlement['kind'];
  readonly strategy: RedeliveryStrategy | undefined;
  /** Milliseconds until it runs again, where it does. */
  readonly delayMs: number | undefined;
  readonly cause: DeadLetterCause | undefined;
  /** The reason that the outcome gives, redacted. */
  readonly reason: string | undefined;
  /** From the start of the run to the end of its settlement, milliseconds. */
  readonly durationMs: number;
}

export interface AuditLogOptions {
  /** Takes one record; the next one comes when its promise has settled. What it throws is logged and costs the record. */
  readonly write: (record: AuditRecord) => void | Promise<void>;
  /** Records that wait for a slow writer, at most; further ones are lost, logged and counted. @default 10,000 */
  readonly maxQueued?: number | undefined;
  /**
   * Milliseconds that closing waits for what is queued, and no longer than the runtime waits for its plugins; the rest is
   * lost, logged and counted. @default 5 s
   */
  readonly flushMs?: number | undefined;
  /** Keeps secrets out of `reason`. @default nothing is redacted */
  readonly redact?: Redact | undefined;
}

export interface AuditCounts {
  readonly written: number;
  /** `write` threw or rejected. */
  readonly failed: number;
  /** The queue was full, or closing could not wait longer, also for a `write` that had begun: what becomes of that is unknown. */
  readonly lost: number;
  /** Waiting, or with the writer now. */
  readonly queued: number;
}

export interface AuditLog extends Plugin {
  /** Since the plugin was made. */
  readonly counts: AuditCounts;
}

/** 10,000 records are some MB: minutes of a pause of the writer at full load, and no danger to the process. */
const DEFAULT_MAX_QUEUED = 10_000;
/** Less than the 30 s that a runtime gives its plugins for closing, all together. */
const DEFAULT_FLUSH_MS = seconds(5);
/** Failures and losses come in thousands: one line at first, then at most one in this time. */
const LOG_EVERY_MS = seconds(10);

const OPTION_NAMES = ['write', 'maxQueued', 'flushMs', 'redact'] as const satisfies readonly (keyof AuditLogOptions)[];

/** @throws ConfigurationError on an option that is unknown or wrong. */
export function auditLog(options: AuditLogOptions): AuditLog {
  const check = new OptionChecker('auditLog');
  if (check.object('options', options, '{ write: (record) => ... }')) {
    check.required(options, { write: 'a function that takes a record' });
    check.unknownOptions(options, OPTION_NAMES);
    check.function('write', options.write);
    check.positiveInteger('maxQueued', options.maxQueued);
    check.durationMs('flushMs', options.flushMs);
    checkRedact(options.redact, check);
  }
  check.throwIfAny();
  return new QueuedAuditLog(options);
}

class QueuedAuditLog implements AuditLog {
  readonly name = 'audit-log';
  readonly #write: AuditLogOptions['write'];
  readonly #maxQueued: number;
  readonly #flushMs: number;
  readonly #redact: Redact | undefined;
  readonly #failures = new CountedComplaint('audit records could not be written');
  readonly #losses = new CountedComplaint('audit records are lost: the writer is too slow');
  #queue: AuditRecord[] = [];
  /** What stands before it in the queue is written: taking the first of an array moves all others. */
  #first = 0;
  #writing = false;
  /** What the writer has now. */
  #inHand: AuditRecord | undefined;
  #written = 0;
  #runtime: RuntimeControl | undefined;
  #onEmpty: (() => void) | undefined;

  constructor({ write, maxQueued, flushMs, redact }: AuditLogOptions) {
    this.#write = write;
    this.#maxQueued = maxQueued ?? DEFAULT_MAX_QUEUED;
    this.#flushMs = flushMs ?? DEFAULT_FLUSH_MS;
    this.#redact = redact;
  }

  get counts(): AuditCounts {
    const [failed, lost] = [this.#failures.count, this.#losses.count];
    return { written: this.#written, failed, lost, queued: this.#unwritten };
  }

  get #queued(): number {
    return this.#queue.length - this.#first;
  }

  get #unwritten(): number {
    return this.#queued + (this.#inHand === undefined ? 0 : 1);
  }

  onStart(runtime: RuntimeControl): void {
    this.#runtime = runtime;
  }

  onSettled(report: SettlementReport): void {
    const runtime = this.#runtime;
    if (runtime === undefined) return;
    if (this.#queued >= this.#maxQueued) {
      this.#losses.add(1, runtime);
      return;
    }
    this.#queue.push(this.#record(report, runtime.clock.now()));
    if (!this.#writing) void this.#writeQueued(runtime);
  }

  async onClose(signal?: AbortSignal): Promise<void> {
    const runtime = this.#runtime;
    if (runtime === undefined) return;
    this.#runtime = undefined;
    if (this.#writing) await this.#flushed(runtime, signal);
    this.#losses.add(this.#unwritten, runtime);
    this.#drop(this.#queued);
    this.#inHand = undefined;
    this.#failures.sumUp(runtime);
    this.#losses.sumUp(runtime);
  }

  /** Until the queue is empty; without a turn in between as long as `write` gives no promise. Never rejects. */
  async #writeQueued(runtime: RuntimeControl): Promise<void> {
    this.#writing = true;
    for (let record = this.#queue[this.#first]; record !== undefined; record = this.#queue[this.#first]) {
      this.#drop(1);
      this.#inHand = record;
      try {
        // Whatever a writer in plain JavaScript gives: only what can be waited for is.
        const writing: unknown = this.#write(record);
        if (typeof writing === 'object' && writing !== null) await (writing as PromiseLike<unknown>);
        if (this.#takeBack(record)) this.#written += 1;
      } catch (error) {
        if (this.#takeBack(record)) this.#failures.add(1, runtime, toError(error));
      }
    }
    this.#writing = false;
    this.#onEmpty?.();
  }

  /** False when closing has counted it as lost. */
  #takeBack(record: AuditRecord): boolean {
    if (this.#inHand !== record) return false;
    this.#inHand = undefined;
    return true;
  }

  #drop(count: number): void {
    this.#first += count;
    if (this.#first < this.#queue.length / 2) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }

  /** Resolves when everything is written, or closing can wait no longer. */
  #flushed({ clock }: RuntimeControl, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = clock.setTimer(this.#flushMs, end);
      signal?.addEventListener('abort', end);
      this.#onEmpty = end;
    });
  }

  /** One literal: spreading one object into another costs 50 times as much. */
  #record(report: SettlementReport, settledMs: number): AuditRecord {
    return {
      settledMs,
      handler: report.handler,
      subscription: report.subscription,
      topic: report.topic,
      messageId: formatMessageId(report.id),
      attempt: report.attempt,
      outcome: report.outcome,
      settlement: report.settlement,
      strategy: report.strategy,
      delayMs: report.delayMs,
      cause: report.cause,
      reason: report.failure === undefined ? undefined : redactText(report.failure.reason, this.#redact),
      durationMs: report.durationMs,
    };
  }
}

/** Counts what went wrong, and says so often enough and not more often. */
class CountedComplaint {
  readonly #message: string;
  #count = 0;
  #unsaid = 0;
  #saidMs = -Infinity;
  #error: Error | undefined;

  constructor(message: string) {
    this.#message = message;
  }

  get count(): number {
    return this.#count;
  }

  add(count: number, runtime: RuntimeControl, error?: Error): void {
    this.#count += count;
    this.#unsaid += count;
    this.#error = error;
    if (runtime.clock.now() - this.#saidMs >= LOG_EVERY_MS) this.sumUp(runtime);
  }

  /** What has not been said yet. */
  sumUp({ clock, logger }: RuntimeControl): void {
    if (this.#unsaid === 0) return;
    logger.error(this.#message, { plugin: 'audit-log', records: this.#unsaid, inAll: this.#count, error: this.#error });
    this.#unsaid = 0;
    this.#saidMs = clock.now();
  }
}
