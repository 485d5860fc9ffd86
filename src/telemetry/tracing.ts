// Makes the spans: of runs, batches, publishes, acknowledgements and transactions, each with its parent and its links.
import type { Attributes, Context, Link, SpanContext, Tracer } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, context as contextApi, isSpanContextValid, trace } from '@opentelemetry/api';
import { formatMessageId } from '../core/message-id.js';
import type { MessageProperties } from '../core/properties.js';
import type { BatchStart, PublishStart, RunStart, TransactionCall } from '../ports/telemetry.js';
import { CallSpan } from './call-span.js';
import type { MessageCarrier } from './message-carrier.js';
import { validSpanOf } from './message-carrier.js';
import type { ResolvedOptions } from './open-telemetry-options.js';
import { OpenSpans } from './open-spans.js';
import { ProcessSpan } from './process-span.js';
import * as names from './semconv.js';
import { SpanAttributes } from './span-attributes.js';
import { WorkflowTracing } from './workflow-tracing.js';

const CORRELATION_ID = 'pulsework-correlation-id';

export interface PublishSpan {
  readonly call: CallSpan;
  readonly properties: MessageProperties;
}

export interface BatchSpans {
  readonly batch: CallSpan;
  readonly runs: readonly ProcessSpan[];
}

export class Tracing {
  readonly #tracer: Tracer;
  readonly #options: ResolvedOptions;
  readonly #carrier: MessageCarrier;
  readonly #attributes: SpanAttributes;
  readonly #openSpans = new OpenSpans();
  readonly workflows: WorkflowTracing;

  constructor(tracer: Tracer, carrier: MessageCarrier, options: ResolvedOptions) {
    this.#tracer = tracer;
    this.#options = options;
    this.#carrier = carrier;
    this.#attributes = new SpanAttributes(options);
    const openSpans = this.#openSpans;
    this.workflows = new WorkflowTracing({ tracer, carrier, openSpans, redact: options.redact });
  }

  /**
   * Its parent is where the message was created, never what is active here: handlers are called from the runtime's own
   * loop, and a span that is active there belongs to whatever started the runtime, or published on the embedded broker.
   * @param batch of the span that the handler runs in, where it takes several deliveries at once.
   */
  startRun(start: RunStart, batch?: SpanContext): ProcessSpan {
    const created = this.#carrier.extract(start.properties);
    const parent = this.#parentOf(created);
    const links = linksTo(validSpanOf(created), this.#carrier.originOf(start.properties), batch);
    const attributes = this.#attributes.run(start);
    const name = `process ${start.topicTemplate ?? start.topic}`;
    const span = this.#tracer.startSpan(name, { kind: SpanKind.CONSUMER, attributes, links }, parent);
    if (span.isRecording()) span.setAttributes(this.#ofMessage(start));
    const { redact } = this.#options;
    return new ProcessSpan({ span, context: trace.setSpan(parent, span), openSpans: this.#openSpans, redact });
  }

  /** One span in which the handler runs, linked to where each message was created, and one of each delivery. */
  startBatch(start: BatchStart): BatchSpans {
    const { deliveries } = start;
    const created = deliveries.map(({ properties }) => validSpanOf(this.#carrier.extract(properties)));
    const topic = onlyOne(deliveries.map((delivery) => delivery.topic));
    const attributes = this.#attributes.batch(start, topic);
    const destination = deliveries[0]?.topicTemplate ?? topic;
    const name = destination === undefined ? 'process' : `process ${destination}`;
    const links = linksTo(...created);
    const span = this.#tracer.startSpan(name, { kind: SpanKind.CONSUMER, attributes, links }, ROOT_CONTEXT);
    const batch = this.#call(span, ROOT_CONTEXT);
    return { batch, runs: deliveries.map((delivery) => this.startRun(delivery, span.spanContext())) };
  }

  /** @param run of which the message follows. Undefined where tracing is suppressed: the message goes as it is. */
  startPublish(start: PublishStart, run: ProcessSpan | undefined): PublishSpan | undefined {
    const { kind, topic, message, isRelayed = false } = start;
    const parent = run?.context ?? this.#parentOutsideRuns(start);
    // Of what is relayed it is the parent.
    const links = isRelayed ? [] : linksTo(this.#carrier.carriedBy(message.properties));
    const attributes = this.#attributes.publish(topic, kind);
    const span = this.#tracer.startSpan(`send ${topic}`, { kind: SpanKind.PRODUCER, attributes, links }, parent);
    if (!isSpanContextValid(span.spanContext())) return undefined;
    const correlationId = message.properties[CORRELATION_ID];
    if (correlationId !== undefined && span.isRecording()) span.setAttribute(names.CONVERSATION_ID, correlationId);
    const context = trace.setSpan(parent, span);
    const properties =
      kind === 'message'
        ? this.#carrier.inject(context, message.properties)
        : this.#carrier.injectIntoLetter(context, message.properties);
    return { call: this.#call(span, context), properties };
  }

  /** @param startedMs epoch milliseconds, where it started earlier. */
  startAcknowledge(start: RunStart, run: ProcessSpan, startedMs?: number): CallSpan {
    const attributes = this.#attributes.settle('ack', start);
    const options = { kind: SpanKind.CLIENT, attributes, ...(startedMs !== undefined && { startTime: startedMs }) };
    return this.#call(this.#tracer.startSpan(`ack ${start.topic}`, options, run.context), run.context);
  }

  startTransaction(call: TransactionCall, start: RunStart, run: ProcessSpan): CallSpan {
    const options = { kind: SpanKind.CLIENT, attributes: this.#attributes.settle(call, start) };
    return this.#call(this.#tracer.startSpan(`${call} transaction`, options, run.context), run.context);
  }

  /** Ends what is still open. */
  close(): void {
    this.#openSpans.endAll();
  }

  /**
   * A letter without a run (a process died, a drain began) belongs to its message; what is relayed, to where it was recorded;
   * what users publish, to what is active.
   */
  #parentOutsideRuns({ kind, message: { properties }, isRelayed = false }: PublishStart): Context {
    if (isRelayed) return this.#carrier.extract(properties);
    return kind === 'message' ? contextApi.active() : this.#parentOf(this.#carrier.extract(properties));
  }

  /** Where a message was created, or that context's baggage alone. */
  #parentOf(created: Context): Context {
    return this.#options.traceMode === 'parent' ? created : trace.deleteSpan(created);
  }

  #call(span: ReturnType<Tracer['startSpan']>, parent: Context): CallSpan {
    return new CallSpan(span, trace.setSpan(parent, span), this.#openSpans, this.#options.redact);
  }

  /** What samplers need not see. */
  #ofMessage({ id, redeliveryCount, properties, payloadBytes }: RunStart): Attributes {
    const correlationId = properties[CORRELATION_ID];
    return {
      [names.MESSAGE_ID]: formatMessageId(id),
      [names.REDELIVERY_COUNT]: redeliveryCount,
      ...(correlationId !== undefined && { [names.CONVERSATION_ID]: correlationId }),
      ...(this.#options.payloadSize && { [names.BODY_SIZE]: payloadBytes }),
    };
  }
}

function linksTo(...spans: readonly (SpanContext | undefined)[]): Link[] {
  const links: Link[] = [];
  for (const context of spans) if (context !== undefined && isSpanContextValid(context)) links.push({ context });
  return links;
}

function onlyOne(topics: readonly string[]): string | undefined {
  return topics.every((topic) => topic === topics[0]) ? topics[0] : undefined;
}
