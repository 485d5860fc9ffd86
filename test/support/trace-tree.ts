// Exported spans as text that people can read and compare: one tree for each trace, in the order in which spans started.
// What differs from run to run or from broker to broker (ids, times, stacks) is left out or numbered.
import type { Attributes } from '@opentelemetry/api';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

export interface TraceTreeOptions {
  /** Ids of spans in the order in which they started. */
  readonly startOrder: readonly string[];
  /** Topic names of a test, which differ from broker to broker, as they are written down. @default unchanged */
  readonly rename?: (text: string) => string;
}

/** Each message id becomes `m1`, `m2`, ... in the order in which they appear; the id of the first is what others correlate by. */
const MESSAGE_IDS = new Set(['messaging.message.id', 'messaging.message.conversation_id']);
const LEFT_OUT = new Set(['exception.stacktrace', 'server.address', 'server.port']);

export function traceTree(spans: readonly ReadableSpan[], options: TraceTreeOptions): string {
  return new TraceTree(spans, options).text();
}

class TraceTree {
  readonly #spans: readonly ReadableSpan[];
  readonly #byId: ReadonlyMap<string, ReadableSpan>;
  readonly #rename: (text: string) => string;
  readonly #numbers = new Map<ReadableSpan, number>();
  readonly #messages = new Map<unknown, string>();
  readonly #lines: string[] = [];

  constructor(spans: readonly ReadableSpan[], { startOrder, rename = (text) => text }: TraceTreeOptions) {
    const place = (span: ReadableSpan): number => startOrder.indexOf(span.spanContext().spanId);
    this.#spans = [...spans].sort((a, b) => place(a) - place(b));
    this.#byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
    this.#rename = rename;
  }

  text(): string {
    const traces = new Set(this.#spans.map((span) => span.spanContext().traceId));
    // Numbered before they are written: a link may lead to a later trace.
    for (const trace of traces) for (const root of this.#rootsOf(trace)) this.#number(root);
    for (const trace of traces) {
      this.#lines.push('trace');
      for (const root of this.#rootsOf(trace)) this.#write(root, '  ');
    }
    return `${this.#lines.join('\n')}\n`;
  }

  #rootsOf(trace: string): readonly ReadableSpan[] {
    return this.#spans.filter(
      (span) =>
        span.spanContext().traceId === trace && this.#byId.get(span.parentSpanContext?.spanId ?? '') === undefined,
    );
  }

  #childrenOf(parent: ReadableSpan): readonly ReadableSpan[] {
    return this.#spans.filter((span) => span.parentSpanContext?.spanId === parent.spanContext().spanId);
  }

  #number(span: ReadableSpan): void {
    this.#numbers.set(span, this.#numbers.size + 1);
    for (const child of this.#childrenOf(span)) this.#number(child);
  }

  #write(span: ReadableSpan, indent: string): void {
    const { kind, status, parentSpanContext } = span;
    const outside =
      parentSpanContext !== undefined && !this.#byId.has(parentSpanContext.spanId) ? ', parent outside' : '';
    this.#lines.push(`${indent}#${this.#labelOf(span)} (${SpanKind[kind]}${outside})`);
    const inner = `${indent}    `;
    if (status.code !== SpanStatusCode.UNSET)
      this.#lines.push(`${inner}status ${SpanStatusCode[status.code]}: ${this.#rename(status.message ?? '')}`);
    this.#lines.push(...this.#attributeLines(span.attributes).map((line) => inner + line));
    for (const { context } of span.links) {
      const linked = this.#byId.get(context.spanId);
      this.#lines.push(`${inner}link to ${linked === undefined ? 'a span outside' : `#${this.#labelOf(linked)}`}`);
    }
    for (const { name, attributes = {} } of span.events)
      this.#lines.push(`${inner}event ${name} { ${this.#attributeLines(attributes).join(', ')} }`);
    for (const child of this.#childrenOf(span)) this.#write(child, `${indent}  `);
  }

  #labelOf(span: ReadableSpan): string {
    return `${this.#numbers.get(span) ?? 0} ${this.#rename(span.name)}`;
  }

  #attributeLines(attributes: Attributes): readonly string[] {
    return Object.keys(attributes)
      .filter((name) => !LEFT_OUT.has(name))
      .sort()
      .map((name) => `${name}=${this.#valueOf(name, attributes[name])}`);
  }

  #valueOf(name: string, value: unknown): string {
    if (!MESSAGE_IDS.has(name)) return this.#rename(String(value));
    const known = this.#messages.get(value) ?? `m${this.#messages.size + 1}`;
    this.#messages.set(value, known);
    return known;
  }
}
