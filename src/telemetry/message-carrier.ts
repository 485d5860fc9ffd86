// The trace context in message properties: read from what arrived, written to what leaves. Reading always begins at the
// root context: on top of the active one, every message of a process would join the trace of whatever started it.
import type { Context, SpanContext, TextMapGetter, TextMapPropagator } from '@opentelemetry/api';
import { ROOT_CONTEXT, defaultTextMapSetter, isSpanContextValid, trace } from '@opentelemetry/api';
import type { MessageProperties } from '../core/properties.js';

/** On letters: the `traceparent` that the message had when it was published first. */
export const ORIGIN_TRACEPARENT = 'pulsework-origin-traceparent';

const TRACEPARENT = 'traceparent';
/** Replaced also where another propagator is used: a reader of W3C's would take the old one for the letter's. */
const W3C_FIELDS = [TRACEPARENT, 'tracestate', 'baggage'];

/** Own properties only: a property may have any name, and its object any prototype. */
const GETTER: TextMapGetter<MessageProperties> = {
  keys: (properties) => Object.keys(properties),
  get: (properties, key) => (Object.hasOwn(properties, key) ? properties[key] : undefined),
};

export class MessageCarrier {
  readonly #propagator: TextMapPropagator;
  /** In lower case. */
  readonly #fields: ReadonlySet<string>;

  constructor(propagator: TextMapPropagator) {
    this.#propagator = propagator;
    this.#fields = new Set([...propagator.fields().map((field) => field.toLowerCase()), ...W3C_FIELDS]);
  }

  /** The context a message was created in: its span and its baggage. */
  extract(properties: MessageProperties): Context {
    return this.#propagator.extract(ROOT_CONTEXT, properties, GETTER);
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

  /** A copy of `properties` with this context and no other. @param keepsOrigin see ORIGIN_TRACEPARENT. */
  inject(context: Context, properties: MessageProperties, keepsOrigin: boolean): MessageProperties {
    const copy = Object.create(null) as Record<string, string>;
    for (const name of Object.keys(properties)) {
      if (!this.#fields.has(name.toLowerCase())) copy[name] = properties[name] ?? '';
    }
    const carried = GETTER.get(properties, TRACEPARENT);
    if (keepsOrigin && typeof carried === 'string') copy[ORIGIN_TRACEPARENT] ??= carried;
    this.#propagator.inject(context, copy, defaultTextMapSetter);
    return copy;
  }

  #spanOf(properties: MessageProperties): SpanContext | undefined {
    return validSpanOf(this.extract(properties));
  }
}

export function validSpanOf(context: Context): SpanContext | undefined {
  const span = trace.getSpanContext(context);
  return span !== undefined && isSpanContextValid(span) ? span : undefined;
}
