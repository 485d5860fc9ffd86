// What somebody writes who uses OpenTelemetry's API without this package: the same spans, the same histogram and counts
// that `openTelemetry()` makes, in the handler. Attributes that never change are made once, as there.
import type { Histogram } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, context, metrics, propagation, trace } from '@opentelemetry/api';
import type { Delivery, MessageProperties } from '../../src/index.js';
import { formatMessageId } from '../../src/index.js';
import { SUBSCRIPTION, TOPIC_NAME } from './workload.js';

const HANDLER = 'charge';

const SPAN_ATTRIBUTES = {
  'messaging.system': 'pulsar',
  'messaging.operation.name': 'process',
  'messaging.operation.type': 'process',
  'messaging.destination.name': TOPIC_NAME,
  'messaging.destination.subscription.name': SUBSCRIPTION,
  'app.handler': HANDLER,
  'app.attempt': 1,
};

/** One span around `work`, in the trace of the message. */
export async function tracedByHand<T>(delivery: Delivery, work: () => Promise<T>): Promise<T> {
  const parent = propagation.extract(ROOT_CONTEXT, delivery.properties);
  const created = trace.getSpanContext(parent);
  const links = created === undefined ? [] : [{ context: created }];
  const options = { kind: SpanKind.CONSUMER, attributes: SPAN_ATTRIBUTES, links };
  const span = trace.getTracer('bench').startSpan(`process ${TOPIC_NAME}`, options, parent);
  if (span.isRecording()) {
    span.setAttributes({
      'messaging.message.id': formatMessageId(delivery.id),
      'app.redelivery_count': delivery.redeliveryCount,
    });
  }
  try {
    const result = await context.with(trace.setSpan(parent, span), work);
    if (span.isRecording()) {
      span.setAttributes({
        'app.outcome': 'success',
        'app.settlement': 'acknowledge',
        'messaging.pulsar.acknowledgment.type': 'acknowledge',
      });
    }
    return result;
  } finally {
    span.end();
  }
}

/** The span of a follow-up, below the active one, and the properties that carry it. */
export function sentByHand(topic: string): MessageProperties {
  const attributes = {
    'messaging.system': 'pulsar',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.destination.name': topic,
    'app.publish.kind': 'message',
  };
  const parent = context.active();
  const span = trace.getTracer('bench').startSpan(`send ${topic}`, { kind: SpanKind.PRODUCER, attributes }, parent);
  const properties: Record<string, string> = {};
  propagation.inject(trace.setSpan(parent, span), properties);
  span.end();
  return properties;
}

const METRIC_ATTRIBUTES = {
  'messaging.system': 'pulsar',
  'messaging.operation.name': 'process',
  'messaging.destination.name': TOPIC_NAME,
  'messaging.destination.subscription.name': SUBSCRIPTION,
  'app.handler': HANDLER,
};

/** One histogram, and counts as plain numbers that are read when metrics are collected. */
export class InstrumentsByHand {
  readonly #duration: Histogram;
  #consumed = 0;
  #attempts = 0;
  #outcomes = 0;
  #settlements = 0;

  constructor() {
    const meter = metrics.getMeter('bench');
    const boundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
    const options = { unit: 's', advice: { explicitBucketBoundaries: boundaries } };
    this.#duration = meter.createHistogram('messaging.process.duration', options);
    const counts = {
      consumed: () => this.#consumed,
      attempts: () => this.#attempts,
      outcomes: () => this.#outcomes,
      settlements: () => this.#settlements,
    };
    for (const [name, count] of Object.entries(counts)) {
      const counter = meter.createObservableCounter(`app.${name}`);
      counter.addCallback((result) => result.observe(count(), METRIC_ATTRIBUTES));
    }
  }

  /** Gives when, epoch milliseconds. */
  started(): number {
    this.#consumed += 1;
    this.#attempts += 1;
    return Date.now();
  }

  ended(startedMs: number): void {
    this.#outcomes += 1;
    this.#settlements += 1;
    this.#duration.record((Date.now() - startedMs) / 1_000, METRIC_ATTRIBUTES);
  }
}
