// Counts the spans that start and end, and knows which have not ended. Keeps nothing of those that have.
import type { Attributes, SpanContext } from '@opentelemetry/api';

/** What is looked at of a span of the SDK. */
export interface AccountedSpan {
  readonly name: string;
  readonly attributes: Attributes;
  spanContext(): SpanContext;
}

/** A span with it was ended by the close of its runtime, because nothing else had. */
const UNFINISHED = 'pulsework.unfinished';
const SHOWN = 5;

/** A SpanProcessor. */
export class SpanAccount {
  readonly #open = new Map<string, string>();
  readonly #faults: string[] = [];
  #started = 0;
  #ended = 0;

  get started(): number {
    return this.#started;
  }

  get ended(): number {
    return this.#ended;
  }

  get open(): number {
    return this.#open.size;
  }

  onStart(span: AccountedSpan): void {
    this.#started += 1;
    this.#open.set(span.spanContext().spanId, span.name);
  }

  onEnd(span: AccountedSpan): void {
    this.#ended += 1;
    if (!this.#open.delete(span.spanContext().spanId)) this.#fault(`span "${span.name}" ended twice`);
    if (span.attributes[UNFINISHED] === true)
      this.#fault(`span "${span.name}" was left to the close of its runtime to be ended`);
  }

  async forceFlush(): Promise<void> {
    // Nothing is exported.
  }

  async shutdown(): Promise<void> {
    // Nothing is open.
  }

  /** What does not hold once nothing is under way. What is open is told once, and forgotten. */
  violations(): readonly string[] {
    const told = this.#faults.splice(0);
    if (this.#open.size === 0) return told;
    const names = [...new Set(this.#open.values())].slice(0, SHOWN).join(', ');
    told.push(`${this.#open.size} spans were started and never ended: ${names}`);
    this.#open.clear();
    return told;
  }

  /** One of each kind: of what goes wrong each time there would be too many. */
  #fault(text: string): void {
    if (this.#faults.length < SHOWN && !this.#faults.includes(text)) this.#faults.push(text);
  }
}
