// The trace context in message properties: read from what arrived, written to what leaves. Reading always begins at the
// root context: on top of the active one, every message of a process would join the trace of whatever started it.
import type { Context, SpanContext, TextMapGetter, TextMapPropagator } from '@opentelemetry/api';
import { ROOT_CONTEXT, defaultTextMapSetter, isSpanContextValid, trace } from '@opentelemetry/api';
import type { MessageProperties } from '../core/properties.js';
import { utf8Length } from '../core/text.js';

/** On letters: the `traceparent` that the message had when it was published first. */
export const ORIGIN_TRACEPARENT = 'pulsework-origin-traceparent';

const TRACEPARENT = 'traceparent';
/** Replaced also where another propagator is used: a reader of W3C's would take the old one for the letter's. */
const W3C_FIELDS = [TRACEPARENT, 'tracestate', 'baggage'];

/**
 * What a letter has room for besides what it is made of: a `traceparent`, and the one it came with. Its other properties
 * were made to fit into what the broker takes.
 */
const LETTER_ROOM_BYTES = 256;

/** Own properties only: a property may have any name, and its object any prototype. */
const GETTER: TextMapGetter<MessageProperties> = {
  keys: (properties) => Object.keys(properties),
  get: (properties, key) => (Object.hasOwn(properties, key) ? properties[key] : undefined),
};

export class MessageCarrier {
  readonly #propagator: TextMapPropagator;
  readonly #failed: (hook: string, error: unknown) => void;
  /** In lower case. */
  readonly #fields: ReadonlySet<string>;

  /** @param failed is told what the propagator throws: it costs the context, and not the span or the numbers. */
  constructor(propagator: TextMapPropagator, failed: (hook: string, error: unknown) => void) {
    this.#propagator = propagator;
    this.#failed = failed;
    this.#fields = new Set([...propagator.fields().map((field) => field.toLowerCase()), ...W3C_FIELDS]);
  }

  /** The context a message was created in: its span and its baggage. */
  extract(properties: MessageProperties): Context {
    try {
      return this.#propagator.extract(ROOT_CONTEXT, properties, GETTER);
    } catch (error) {
      this.#failed('extract', error);
      return ROOT_CONTEXT;
    }
  }

  /** The span that published the message first, where it has been published again since. */
  originOf(properties: MessageProperties): SpanContext | undefined {
    const traceparent = GETTER.get(properties, ORIGIN_TRACEPARENT);
    return typeof traceparent === 'string' ? this.#spanOf({ [TRACEPARENT]: traceparent }) : undefined;
  }

  /** The span whose context stands in the properties of what is to be published, the first one where there were several. */
  carriedBy(properties: MessageProperties): SpanContext | undefined {
    return this.originOf(properties) ?? this.#spanOf(properties);
  }

  /** Those of `properties` that are context. */
  contextOf(properties: MessageProperties): MessageProperties {
    return Object.fromEntries(Object.entries(properties).filter(([name]) => this.#fields.has(name.toLowerCase())));
  }

  /** A copy of `properties` with this context and no other. */
  inject(context: Context, properties: MessageProperties): MessageProperties {
    const [copy] = this.#withoutContext(properties);
    return Object.assign(copy, this.#fieldsOf(context));
  }

  /** The same for a letter: it keeps the origin, and of the context, the smallest fields first, what there is room for. */
  injectIntoLetter(context: Context, properties: MessageProperties): MessageProperties {
    const [copy, replacedBytes] = this.#withoutContext(properties);
    const carried = GETTER.get(properties, TRACEPARENT);
    if (typeof carried === 'string') copy[ORIGIN_TRACEPARENT] ??= carried;
    const bySize = Object.entries(this.#fieldsOf(context)).sort((a, b) => sizeOf(...a) - sizeOf(...b));
    let room = Math.max(replacedBytes, LETTER_ROOM_BYTES);
    for (const [name, value] of bySize) {
      room -= sizeOf(name, value);
      if (room >= 0) copy[name] = value;
    }
    return copy;
  }

  /** All that the propagator writes, or nothing. */
  #fieldsOf(context: Context): Readonly<Record<string, string>> {
    const fields = Object.create(null) as Record<string, string>;
    try {
      this.#propagator.inject(context, fields, defaultTextMapSetter);
      return fields;
    } catch (error) {
      this.#failed('inject', error);
      return {};
    }
  }

  /** With the bytes of the fields that are left out. */
  #withoutContext(properties: MessageProperties): [copy: Record<string, string>, bytes: number] {
    const copy = Object.create(null) as Record<string, string>;
    let bytes = 0;
    for (const [name, value] of Object.entries(properties)) {
      if (this.#fields.has(name.toLowerCase())) bytes += sizeOf(name, value);
      else copy[name] = value;
    }
    return [copy, bytes];
  }

  #spanOf(properties: MessageProperties): SpanContext | undefined {
    return validSpanOf(this.extract(properties));
  }
}

function sizeOf(name: string, value: string): number {
  return utf8Length(name) + utf8Length(value);
}

export function validSpanOf(context: Context): SpanContext | undefined {
  const span = trace.getSpanContext(context);
  return span !== undefined && isSpanContextValid(span) ? span : undefined;
}
