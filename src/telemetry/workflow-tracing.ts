// Spans of workflows: one of each activation, below it one of each attempt of a step. All of a workflow are in one trace, however
// long it takes and whichever processes work on it: their parent is the context that is kept with the workflow.
import type { Attributes, Context, Link, Span, Tracer } from '@opentelemetry/api';
import { SpanKind, SpanStatusCode, context as contextApi, trace } from '@opentelemetry/api';
import { cutStack } from '../core/failure-report.js';
import type { MessageProperties } from '../core/properties.js';
import type { Redact } from '../core/redaction.js';
import { redactText } from '../core/redaction.js';
import type { JournalError } from '../core/workflow-journal.js';
import type {
  ActivationEnd,
  ActivationObserver,
  ActivationStart,
  StepEnd,
  StepObserver,
  StepStart,
} from '../ports/workflow-telemetry.js';
import { readableText } from './failure-facts.js';
import type { MessageCarrier } from './message-carrier.js';
import { validSpanOf } from './message-carrier.js';
import type { OpenSpans } from './open-spans.js';
import { ATTEMPT, ERROR_TYPE } from './semconv.js';
import * as names from './workflow-semconv.js';

export interface WorkflowTracingParts {
  readonly tracer: Tracer;
  readonly carrier: MessageCarrier;
  readonly openSpans: OpenSpans;
  readonly redact: Redact | undefined;
}

/** Ends with which something is wrong. */
const ERRORS: ReadonlySet<string> = new Set(['failed', 'blocked', 'stuck', 'retry']);

export class WorkflowTracing {
  readonly #parts: WorkflowTracingParts;

  constructor(parts: WorkflowTracingParts) {
    this.#parts = parts;
  }

  /** Of the run that is active; without a context manager nothing is, and what the message carries has to do. */
  contextOf(properties: MessageProperties): MessageProperties {
    const { carrier } = this.#parts;
    const active = contextApi.active();
    return validSpanOf(active) === undefined ? carrier.contextOf(properties) : carrier.inject(active, {});
  }

  startActivation({ workflow, id, run, version, context, causes }: ActivationStart): ActivationObserver {
    const { tracer, carrier, openSpans, redact } = this.#parts;
    const parent = carrier.extract(context);
    const own = { [names.WORKFLOW_NAME]: workflow, [names.WORKFLOW_ID]: id, [names.WORKFLOW_RUN]: run };
    const attributes = { ...own, [names.WORKFLOW_VERSION]: version };
    const links = causes.flatMap((cause): Link[] => {
      const span = validSpanOf(carrier.extract(cause));
      return span === undefined ? [] : [{ context: span }];
    });
    const span = tracer.startSpan(`activate ${workflow}`, { kind: SpanKind.INTERNAL, attributes, links }, parent);
    openSpans.add(span);
    const within = trace.setSpan(parent, span);
    return {
      propertiesOf: (properties) => carrier.inject(within, properties),
      startStep: (start) => this.#startStep(start, own, within),
      ended: ({ status, error }: ActivationEnd) => {
        if (!openSpans.has(span)) return;
        span.setAttribute(names.WORKFLOW_STATUS, status);
        if (error !== undefined && ERRORS.has(status)) setError(span, error, redact);
        openSpans.end(span);
      },
    };
  }

  #startStep({ command, name, attempt }: StepStart, workflow: Attributes, parent: Context): StepObserver {
    const { tracer, openSpans, redact } = this.#parts;
    const attributes = { ...workflow, [names.STEP_NAME]: name, [ATTEMPT]: attempt };
    const span = tracer.startSpan(`${command} ${name}`, { kind: SpanKind.INTERNAL, attributes }, parent);
    openSpans.add(span);
    const within = trace.setSpan(parent, span);
    return {
      within: (run) => contextApi.with(within, run),
      ended: ({ outcome, error }: StepEnd) => {
        if (!openSpans.has(span)) return;
        span.setAttribute(names.STEP_OUTCOME, outcome);
        if (error !== undefined && ERRORS.has(outcome)) setError(span, error, redact);
        openSpans.end(span);
      },
    };
  }
}

function setError(span: Span, { name, code, message, stack }: JournalError, redact: Redact | undefined): void {
  const type = code ?? name;
  const readable = readableText(message, redact);
  span.setAttribute(ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR, message: readable });
  const shown = stack === undefined ? {} : { stack: cutStack(redactText(stack, redact)) };
  span.recordException({ name: type, message: readable, ...shown });
}
