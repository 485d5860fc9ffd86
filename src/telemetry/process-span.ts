// The span of one run: from the handler's start to the end of its settlement, or to the first call of it that fails.
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { SpanStatusCode, context as contextApi, isSpanContextValid } from '@opentelemetry/api';
import { errorMessage } from '../core/failure-report.js';
import type { Redact } from '../core/redaction.js';
import type { LogFields } from '../ports/logger.js';
import type { SettlementReport } from '../ports/telemetry.js';
import { exceptionOf, readableText, typeOfError } from './failure-facts.js';
import type { OpenSpans } from './open-spans.js';
import * as names from './semconv.js';

export interface ProcessSpanParts {
  readonly span: Span;
  /** With the span in it, and the baggage the message came with. */
  readonly context: Context;
  readonly openSpans: OpenSpans;
  readonly redact: Redact | undefined;
}

export class ProcessSpan {
  readonly context: Context;
  readonly #span: Span;
  readonly #parts: ProcessSpanParts;
  #logFields: LogFields | undefined;

  constructor(parts: ProcessSpanParts) {
    this.#parts = parts;
    this.#span = parts.span;
    this.context = parts.context;
    parts.openSpans.add(parts.span);
  }

  /** The names that OpenTelemetry gives them in logs. Also of a span that is not sampled: its caller's may be. */
  get logFields(): LogFields | undefined {
    const { traceId, spanId } = this.#span.spanContext();
    if (this.#logFields === undefined && isSpanContextValid(this.#span.spanContext()))
      this.#logFields = { trace_id: traceId, span_id: spanId };
    return this.#logFields;
  }

  within<T>(run: () => T): T {
    return contextApi.with(this.context, run);
  }

  /** @param errorType undefined where the run was no error. */
  settled(report: SettlementReport, errorType: string | undefined): void {
    if (!this.#isOpen) return;
    this.#span.setAttributes(outcomeAttributes(report));
    if (errorType !== undefined) this.#failed(report, errorType);
    this.#end();
  }

  /** Its settlement goes on, perhaps for hours: the run itself is over. */
  settlementFailed(call: string, error: Error, report: SettlementReport, errorType: string | undefined): void {
    if (!this.#isOpen) return;
    this.#span.addEvent('pulsework.settlement_failed', {
      [names.SETTLEMENT_CALL]: call,
      [names.ERROR_TYPE]: typeOfError(error),
      'exception.message': readableText(errorMessage(error), this.#parts.redact),
    });
    this.settled(report, errorType);
  }

  dropped(): void {
    if (!this.#isOpen) return;
    this.#span.setAttribute(names.DROPPED, true);
    this.#end();
  }

  get #isOpen(): boolean {
    return this.#parts.openSpans.has(this.#span);
  }

  #failed({ failure, cause }: SettlementReport, errorType: string): void {
    const { redact } = this.#parts;
    const reason = readableText(failure?.reason ?? cause ?? errorType, redact);
    this.#span.setAttribute(names.ERROR_TYPE, errorType);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    if (failure?.error !== undefined) this.#span.recordException(exceptionOf(failure.error, redact));
  }

  #end(): void {
    this.#parts.openSpans.end(this.#span);
  }
}

function outcomeAttributes({ outcome, settlement, strategy, delayMs, cause }: SettlementReport): Attributes {
  const acknowledgment = acknowledgmentType(settlement, strategy);
  return {
    [names.OUTCOME]: outcome,
    [names.SETTLEMENT]: settlement,
    ...(strategy !== undefined && { [names.STRATEGY]: strategy }),
    ...(delayMs !== undefined && { [names.DELAY_MS]: delayMs }),
    ...(cause !== undefined && { [names.DEAD_LETTER_CAUSE]: cause }),
    ...(acknowledgment !== undefined && { [names.ACKNOWLEDGMENT_TYPE]: acknowledgment }),
  };
}

/** What the broker is told, in the words of Java's client; undefined where it is told nothing (yet). */
function acknowledgmentType(
  settlement: SettlementReport['settlement'],
  strategy: SettlementReport['strategy'],
): string | undefined {
  switch (settlement) {
    case 'acknowledge':
    case 'dead-letter':
    case 'skip':
      return 'acknowledge';
    case 'redeliver':
      if (strategy === 'local') return undefined;
      return strategy === 'republish' ? 'acknowledge' : 'negative_acknowledge';
    case 'block':
    case 'leave':
      return undefined;
  }
}
