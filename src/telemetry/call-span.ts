// Spans of calls to the broker: a publish, a batch run, an acknowledgement. They end with the call.
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { SpanStatusCode, context as contextApi } from '@opentelemetry/api';
import { errorMessage } from '../core/failure-report.js';
import type { Redact } from '../core/redaction.js';
import { exceptionOf, readableText, typeOfError } from './failure-facts.js';
import type { OpenSpans } from './open-spans.js';
import * as names from './semconv.js';

export class CallSpan {
  readonly #span: Span;
  readonly #context: Context;
  readonly #openSpans: OpenSpans;
  readonly #redact: Redact | undefined;

  /** @param context with the span in it */
  constructor(span: Span, context: Context, openSpans: OpenSpans, redact: Redact | undefined) {
    this.#span = span;
    this.#context = context;
    this.#openSpans = openSpans;
    this.#redact = redact;
    openSpans.add(span);
  }

  within<T>(run: () => T): T {
    return contextApi.with(this.#context, run);
  }

  /** @param attributes asked for only where somebody records them */
  done(attributes?: () => Attributes): void {
    if (attributes !== undefined && this.#openSpans.has(this.#span)) this.#span.setAttributes(attributes());
    this.#openSpans.end(this.#span);
  }

  failed(error: Error): void {
    if (!this.#openSpans.has(this.#span)) return;
    this.#span.setAttribute(names.ERROR_TYPE, typeOfError(error));
    const message = readableText(errorMessage(error), this.#redact);
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message });
    this.#span.recordException(exceptionOf(error, this.#redact));
    this.done();
  }
}
