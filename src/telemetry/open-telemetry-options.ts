// What a user may set of the OpenTelemetry binding. All problems are reported at once; unknown names are refused.
import type { MeterProvider, TextMapPropagator, TracerProvider } from '@opentelemetry/api';
import { describeValue } from '../core/errors.js';
import { OptionChecker, withoutAbsent } from '../core/options.js';
import type { Redact } from '../core/redaction.js';
import { checkRedact } from '../core/redaction.js';

export interface OpenTelemetryOptions {
  /**
   * How a handler's span belongs to the span that published its message; a link to it is always there. `parent`: it is its
   * child, so that one trace holds the whole journey, as Java's agent and client do it. `link`: it begins a trace of its own,
   * for fan-outs whose one trace would be too large to look at, and to sample receivers apart from senders.
   * @default 'parent'
   */
  readonly traceMode?: 'parent' | 'link' | undefined;
  /**
   * Version of the messaging conventions whose names are used. They differ in one: `messaging.system` up to 1.44,
   * `messaging.system.name` from 1.45 on; `dup` writes both, for the time of a move.
   * @default '1.44'
   */
  readonly semconv?: '1.44' | '1.45' | 'dup' | undefined;
  /** Spans `ack <topic>` below those of the handlers: of each acknowledgement, or of those that fail. @default 'off' */
  readonly settleSpans?: 'off' | 'errors' | 'all' | undefined;
  /**
   * Also measures acknowledgements in `messaging.client.operation.duration`. It costs as much as measuring the handler
   * does (3 microseconds a message with SDK 2.12). @default false
   */
  readonly acknowledgeDuration?: boolean | undefined;
  /** Adds `messaging.message.body.size` (bytes) to spans. @default false */
  readonly payloadSize?: boolean | undefined;
  /**
   * How many pairs of handler and topic, and how many topics published to, metrics tell apart. Further ones are counted
   * together as `_other`: a backend pays for each series. Spans have the real names. @default 100
   */
  readonly maxHandlers?: number | undefined;
  /** `server.address` of spans and metrics: the host of the service URL. @default none */
  readonly serverAddress?: string | undefined;
  /** `server.port`, with `serverAddress`. @default none */
  readonly serverPort?: number | undefined;
  /** Keeps secrets out of error texts on spans; the same as of dead letters. @default nothing is redacted */
  readonly redact?: Redact | undefined;
  /** @default the global one, as it is at `Runtime.start` */
  readonly tracerProvider?: TracerProvider | undefined;
  /** @default the global one, as it is at `Runtime.start` */
  readonly meterProvider?: MeterProvider | undefined;
  /** Reads and writes the context in message properties. @default the global one, usually W3C's */
  readonly propagator?: TextMapPropagator | undefined;
}

const DEFAULTS = {
  traceMode: 'parent',
  semconv: '1.44',
  settleSpans: 'off',
  acknowledgeDuration: false,
  payloadSize: false,
  maxHandlers: 100,
  serverAddress: undefined,
  serverPort: undefined,
  redact: undefined,
  tracerProvider: undefined,
  meterProvider: undefined,
  propagator: undefined,
} as const;

type Field = keyof OpenTelemetryOptions;
export type ResolvedOptions = {
  readonly [K in Field]-?: (typeof DEFAULTS)[K] extends undefined
    ? OpenTelemetryOptions[K]
    : Exclude<OpenTelemetryOptions[K], undefined>;
};

/** @throws ConfigurationError that lists every problem. */
export function resolveOpenTelemetryOptions(options: OpenTelemetryOptions): ResolvedOptions {
  const check = new OptionChecker('openTelemetry()');
  const given: unknown = options;
  if (check.object('options', given, '{ traceMode }')) {
    check.unknownOptions(given, Object.keys(DEFAULTS));
    checkValues(options, check);
  }
  check.throwIfAny();
  return { ...DEFAULTS, ...withoutAbsent(options) };
}

function checkValues(options: OpenTelemetryOptions, check: OptionChecker): void {
  check.oneOf('traceMode', options.traceMode, ['parent', 'link']);
  check.oneOf('semconv', options.semconv, ['1.44', '1.45', 'dup']);
  check.oneOf('settleSpans', options.settleSpans, ['off', 'errors', 'all']);
  check.boolean('acknowledgeDuration', options.acknowledgeDuration);
  check.boolean('payloadSize', options.payloadSize);
  check.positiveInteger('maxHandlers', options.maxHandlers);
  check.nonEmptyString('serverAddress', options.serverAddress);
  checkServerPort(options.serverPort, check);
  if (options.serverPort !== undefined && options.serverAddress === undefined)
    check.problem('"serverPort" says nothing without "serverAddress"');
  checkRedact(options.redact, check);
  check.methods('tracerProvider', options.tracerProvider, ['getTracer'], 'new TracerProvider(...) of an SDK');
  check.methods('meterProvider', options.meterProvider, ['getMeter'], 'new MeterProvider(...) of an SDK');
  const propagator = ['inject', 'extract', 'fields'];
  check.methods('propagator', options.propagator, propagator, 'new W3CTraceContextPropagator()');
}

function checkServerPort(port: unknown, check: OptionChecker): void {
  if (port === undefined) return;
  if (typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535) return;
  check.problem(`"serverPort" must be a whole number from 1 to 65535, got ${describeValue(port)}`);
}
