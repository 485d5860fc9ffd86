// What a runtime is given, its defaults, and what is wrong with it.
import type { HandlerClass, HandlerDefinition } from '../core/handler-definition.js';
import { describeValue } from '../core/errors.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { RedeliveryPolicyOptions } from '../core/redelivery-policy.js';
import { checkRedeliveryPolicy } from '../core/redelivery-policy.js';
import { DEFAULT_NAMESPACE, namespaceProblem } from '../core/topic-name.js';
import type { AttemptStore } from '../ports/attempt-store.js';
import { CLOCK_METHODS } from '../ports/clock.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Plugin } from '../ports/plugin.js';
import type { Telemetry } from '../ports/telemetry.js';
import type { Transport } from '../ports/transport.js';
import { consoleLogger } from '../system/console-logger.js';
import type { Environment } from '../system/environment.js';
import { systemEnvironment } from '../system/environment.js';
import { safeLogger } from '../system/safe-logger.js';
import { systemClock } from '../system/system-clock.js';
import type { HandlerResolver } from './handler-classes.js';
import { Outbox } from './outbox/outbox.js';

export interface RuntimeOptions {
  /** `embedded()`, or a transport to a Pulsar cluster. The runtime closes it at the end. */
  readonly transport: Transport;
  /** Decorated classes and results of `defineHandler`. None for a process that only publishes, or runs workflows. */
  readonly handlers: readonly (HandlerDefinition | HandlerClass)[];
  /** Makes the instances of handler classes, e.g. `inversifyResolver(container)`. @default `new HandlerClass()` */
  readonly resolve?: HandlerResolver | undefined;
  /** Where short topic names belong, `tenant/namespace`. @default 'public/default' */
  readonly namespace?: string | undefined;
  /** From the names in code to the names of this environment, before the namespace is added. @default unchanged */
  readonly topics?: ((name: string) => string) | undefined;
  /** For all handlers; a handler's own fields win. @default exponential 1 s to 10 min, 10 deliveries */
  readonly redelivery?: RedeliveryPolicyOptions | undefined;
  readonly plugins?: readonly Plugin[] | undefined;
  /** E.g. `pinoLogger(pino())`. @default JSON lines on the console, level `PULSEWORK_LOG_LEVEL` or `info` */
  readonly logger?: Logger | undefined;
  /**
   * Log lines of one kind (level, message, error class) that a handler writes in 10 s; the others are counted, and told as a
   * number. `Infinity` for no limit. @default 100
   */
  readonly maxLogRepeats?: number | undefined;
  /** E.g. `openTelemetry()`. @default none; settlements are logged in any case */
  readonly telemetry?: Telemetry | undefined;
  /**
   * Where attempts are written down, so that they are true across crashes and a message that kills its process becomes a
   * dead letter, e.g. `fileAttemptStore({ path })`. @default none: after a crash `attempt` is a lower bound
   */
  readonly attemptStore?: AttemptStore | undefined;
  /**
   * Messages that are added in transactions of a database, e.g. `postgresOutbox({ pool })`: this runtime relays them, or
   * stands by while another process does. With it, `handlers` may be an empty list. @default none
   */
  readonly outbox?: Outbox | undefined;
  /** Milliseconds that `drain()` lets handlers finish; `Infinity` for no limit. @default 30 s */
  readonly drainDeadlineMs?: number | undefined;
  /** Milliseconds a call to the transport may take before it is repeated. @default 30 s */
  readonly callTimeoutMs?: number | undefined;
  /** Milliseconds a copy of an acknowledged message is recognised. @default 10 s */
  readonly duplicateWindowMs?: number | undefined;
  /** @default the transport's own, else the system's */
  readonly clock?: Clock | undefined;
  /**
   * Whether `currentDelivery()` works inside handlers. It costs every promise of the process (AsyncLocalStorage): about
   * 0.4 µs for each on Node 20. @default false
   */
  readonly currentDelivery?: boolean | undefined;
  /** For jitter: a number in [0, 1). @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface ResolvedRuntimeOptions {
  readonly transport: Transport;
  readonly namespace: string;
  readonly topics: (name: string) => string;
  readonly redelivery: RedeliveryPolicyOptions | undefined;
  readonly plugins: readonly Plugin[];
  readonly logger: Logger;
  readonly maxLogRepeats: number;
  readonly telemetry: Telemetry | undefined;
  readonly attemptStore: AttemptStore | undefined;
  readonly outbox: Outbox | undefined;
  readonly drainDeadlineMs: number;
  readonly callTimeoutMs: number;
  readonly duplicateWindowMs: number;
  readonly currentDelivery: boolean;
  readonly clock: Clock;
  readonly environment: Environment;
}

export const DEFAULT_RUNTIME_OPTIONS = {
  maxLogRepeats: 100,
  drainDeadlineMs: seconds(30),
  callTimeoutMs: seconds(30),
  duplicateWindowMs: seconds(10),
} as const;

/** Each is optional, but something without any observes nothing. */
const TELEMETRY_METHODS = [
  'onStart',
  'startRun',
  'startBatch',
  'startPublish',
  'onSettled',
  'contextOf',
  'startActivation',
  'onWorkflow',
  'onWorkflowCounts',
  'onDrain',
  'onClose',
] as const satisfies readonly (keyof Telemetry)[];

export const RUNTIME_OPTION_NAMES = [
  'transport',
  'handlers',
  'resolve',
  'namespace',
  'topics',
  'redelivery',
  'plugins',
  'logger',
  'maxLogRepeats',
  'telemetry',
  'attemptStore',
  'outbox',
  'drainDeadlineMs',
  'callTimeoutMs',
  'duplicateWindowMs',
  'currentDelivery',
  'clock',
  'random',
] as const satisfies readonly (keyof RuntimeOptions)[];

export function resolveRuntimeOptions(options: RuntimeOptions): ResolvedRuntimeOptions {
  return {
    transport: options.transport,
    namespace: options.namespace ?? DEFAULT_NAMESPACE,
    topics: options.topics ?? ((name) => name),
    redelivery: options.redelivery,
    plugins: options.plugins ?? [],
    logger: safeLogger(options.logger ?? consoleLogger()),
    maxLogRepeats: options.maxLogRepeats ?? DEFAULT_RUNTIME_OPTIONS.maxLogRepeats,
    telemetry: options.telemetry,
    attemptStore: options.attemptStore,
    outbox: options.outbox,
    drainDeadlineMs: options.drainDeadlineMs ?? DEFAULT_RUNTIME_OPTIONS.drainDeadlineMs,
    callTimeoutMs: options.callTimeoutMs ?? DEFAULT_RUNTIME_OPTIONS.callTimeoutMs,
    duplicateWindowMs: options.duplicateWindowMs ?? DEFAULT_RUNTIME_OPTIONS.duplicateWindowMs,
    currentDelivery: options.currentDelivery ?? false,
    clock: options.clock ?? options.transport.clock ?? systemClock,
    environment: options.random === undefined ? systemEnvironment : { ...systemEnvironment, random: options.random },
  };
}

/** One sentence per problem of the runtime's own options; handlers are checked apart. */
export function runtimeOptionProblems(options: RuntimeOptions): readonly string[] {
  const check = new OptionChecker('runtime');
  if (!check.object('options', options)) return check.problems;
  check.required(options, { transport: 'a transport such as embedded()', handlers: 'a list of handlers' });
  check.unknownOptions(options, RUNTIME_OPTION_NAMES);
  check.methods('transport', options.transport, ['subscribe', 'publisher', 'close'], 'e.g. embedded()');
  check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. systemClock');
  const { clock, transport } = options as Partial<RuntimeOptions>;
  if (clock !== undefined && transport?.clock !== undefined && clock !== transport.clock) {
    check.problem('"clock" must be the transport\'s own clock: with two, delays would never end; leave it out');
  }
  check.methods('logger', options.logger, ['debug', 'info', 'warn', 'error'], 'e.g. consoleLogger()');
  if (options.maxLogRepeats !== Infinity) check.positiveInteger('maxLogRepeats', options.maxLogRepeats);
  check.anyMethod('telemetry', options.telemetry, TELEMETRY_METHODS, 'e.g. openTelemetry()');
  check.boolean('currentDelivery', options.currentDelivery);
  check.methods(
    'attemptStore',
    options.attemptStore,
    ['open', 'find', 'begin', 'end', 'delete', 'close'],
    'e.g. fileAttemptStore()',
  );
  if (options.outbox !== undefined && !((options.outbox as unknown) instanceof Outbox))
    check.problem(`"outbox" must be an outbox such as postgresOutbox(), got ${describeValue(options.outbox)}`);
  if (typeof options.resolve !== 'function') check.methods('resolve', options.resolve, ['resolve'], 'or a function');
  checkList('handlers', options.handlers, 'handler classes and results of defineHandler()', check);
  const namespace = options.namespace === undefined ? undefined : namespaceProblem(options.namespace);
  if (namespace !== undefined) check.problem(namespace);
  check.function('topics', options.topics);
  checkRedeliveryPolicy(options.redelivery, check);
  checkList('plugins', options.plugins, 'plugins', check);
  check.durationMs('drainDeadlineMs', options.drainDeadlineMs, { infinite: true });
  check.durationMs('callTimeoutMs', options.callTimeoutMs, { minMs: 1 });
  check.durationMs('duplicateWindowMs', options.duplicateWindowMs);
  check.function('random', options.random);
  return check.problems;
}

function checkList(name: string, value: unknown, of: string, check: OptionChecker): void {
  if (value === undefined || Array.isArray(value)) return;
  check.problem(`"${name}" must be a list of ${of}, got ${describeValue(value)}`);
}
