// The spans that are recording and have not ended: whatever ends, each of them does, at the latest when the runtime closes.
import type { Span } from '@opentelemetry/api';
import { UNFINISHED } from './semconv.js';

export class OpenSpans {
  readonly #spans = new Set<Span>();

  add(span: Span): void {
    if (span.isRecording()) this.#spans.add(span);
  }

  /** False when it had ended, or never recorded: nothing more is worth setting on it. */
  has(span: Span): boolean {
    return this.#spans.has(span);
  }

  /** Once, however often it is called. */
  end(span: Span): void {
    if (this.#spans.delete(span)) span.end();
  }

  /** @throws what ending one of them threw, once all have been told: a span processor may throw. */
  endAll(): void {
    const errors: unknown[] = [];
    for (const span of this.#spans) {
      try {
        span.setAttribute(UNFINISHED, true);
        span.end();
      } catch (error) {
        errors.push(error);
      }
    }
    this.#spans.clear();
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} spans could not be ended`);
  }
}
