// The options of the wire client: what they mean, their defaults, their checks.
import { ConfigurationError, describeValue } from '../../core/errors.js';
import { OptionChecker, minutes, seconds } from '../../core/options.js';
import { CLOCK_METHODS } from '../../ports/clock.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { systemEnvironment } from '../../system/environment.js';
import { LimitedLogger } from '../../system/limited-logger.js';
import { safeLogger } from '../../system/safe-logger.js';
import { systemClock } from '../../system/system-clock.js';
import type { Authentication } from './authentication/authentication.js';
import { parseServiceUrl } from './service-url.js';
import type { ServiceUrl } from './service-url.js';
import { resolveTls } from './tls-options.js';
import type { ResolvedTls, TlsOptions } from './tls-options.js';

export interface WireOptions {
  /**
   * `pulsar://host:6650[,host:port…]`, `pulsar+ssl://host:6651`: brokers or Pulsar proxies. Of several hosts one is chosen
   * at random, and the next one asked whenever a host fails.
   */
  readonly serviceUrl: string;
  /** `tokenAuthentication(...)`, `oauth2Authentication(...)` and the like. @default none */
  readonly authentication?: Authentication | undefined;
  /** Only with `pulsar+ssl://`. */
  readonly tls?: TlsOptions | undefined;
  /** To connect, TLS included, and as long again from there to CONNECTED. @default 10 seconds, as Java's client */
  readonly connectTimeoutMs?: number | undefined;
  /** For one answer of the broker. @default 30 seconds, as Java's client */
  readonly requestTimeoutMs?: number | undefined;
  /** A ping that often; a connection that is silent twice as long is dead. @default 30 seconds, as brokers do */
  readonly keepAliveMs?: number | undefined;
  /** How long `subscribe` and `publisher` repeat what failed for a passing reason. @default 30 seconds */
  readonly operationTimeoutMs?: number | undefined;
  /** First and longest wait between two attempts to connect again. @default 100 ms and 1 minute */
  readonly reconnectMinMs?: number | undefined;
  readonly reconnectMaxMs?: number | undefined;
  /** Of messages without a receipt, all publishers together; further ones wait. @default 64 MiB, as Java's client */
  readonly maxPendingBytes?: number | undefined;
  /** Which of its advertised addresses a broker should name. @default the broker's own choice */
  readonly listenerName?: string | undefined;
  /**
   * Whether `ordered-negative-ack` is spoken with brokers that advertise it (PIP-493, an open proposal): which message of a
   * key failed, so that nothing later of the key is sent meanwhile. No released broker has it, and its numbers in the protocol may
   * still change. @default false
   */
  readonly experimentalOrderedNegativeAck?: boolean | undefined;
  /** Of lines of one kind it gets ten in 10 s, and then a count. What it throws is swallowed. @default none: nothing is written */
  readonly logger?: Logger | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** A number in [0, 1): for jitter and the choice of a host. @default Math.random */
  readonly random?: (() => number) | undefined;
}

export const DEFAULT_WIRE_OPTIONS = {
  connectTimeoutMs: seconds(10),
  requestTimeoutMs: seconds(30),
  keepAliveMs: seconds(30),
  operationTimeoutMs: seconds(30),
  reconnectMinMs: 100,
  reconnectMaxMs: minutes(1),
  maxPendingBytes: 64 * 1024 * 1024,
} as const;

export interface ResolvedWireOptions {
  readonly serviceUrl: ServiceUrl;
  readonly authentication: Authentication | undefined;
  /** With `pulsar+ssl://` only. */
  readonly tls: ResolvedTls | undefined;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly operationTimeoutMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  readonly maxPendingBytes: number;
  readonly listenerName: string | undefined;
  readonly experimentalOrderedNegativeAck: boolean;
  /** Lines that repeat without end are counted, see `LimitedLogger`. */
  readonly logger: LimitedLogger | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

const KNOWN: readonly (keyof WireOptions)[] = [
  'serviceUrl',
  'authentication',
  'tls',
  'connectTimeoutMs',
  'requestTimeoutMs',
  'keepAliveMs',
  'operationTimeoutMs',
  'reconnectMinMs',
  'reconnectMaxMs',
  'maxPendingBytes',
  'listenerName',
  'experimentalOrderedNegativeAck',
  'logger',
  'clock',
  'random',
];

/** @throws ConfigurationError with every problem. */
export function resolveWireOptions(options: WireOptions): ResolvedWireOptions {
  const check = new OptionChecker('wire');
  if (!check.object('options', options)) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, KNOWN);
  const serviceUrl = parseServiceUrl(options.serviceUrl);
  if (typeof serviceUrl === 'string') {
    check.problem(`"serviceUrl" ${serviceUrl}, got ${describeValue(withoutUserInfo(options.serviceUrl))}`);
  }
  for (const name of ['connectTimeoutMs', 'requestTimeoutMs', 'keepAliveMs', 'reconnectMinMs'] as const) {
    check.durationMs(name, options[name], { minMs: 1 });
  }
  check.durationMs('operationTimeoutMs', options.operationTimeoutMs);
  const reconnectMinMs = options.reconnectMinMs ?? DEFAULT_WIRE_OPTIONS.reconnectMinMs;
  check.durationMs('reconnectMaxMs', options.reconnectMaxMs, { minMs: reconnectMinMs });
  check.positiveInteger('maxPendingBytes', options.maxPendingBytes);
  check.nonEmptyString('listenerName', options.listenerName);
  check.boolean('experimentalOrderedNegativeAck', options.experimentalOrderedNegativeAck);
  check.methods('logger', options.logger, ['debug', 'info', 'warn', 'error'], 'e.g. consoleLogger()');
  check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. systemClock');
  check.function('random', options.random);
  checkAuthentication(options.authentication, check);
  const usesTls = typeof serviceUrl !== 'string' && serviceUrl.tls;
  if (options.tls !== undefined && typeof serviceUrl !== 'string' && !usesTls) {
    check.problem('"tls" needs a serviceUrl that starts with pulsar+ssl://');
  }
  checkTlsAuthentication(options, usesTls, check);
  const tls = usesTls || options.tls !== undefined ? resolveTls(options.tls, check) : undefined;
  check.throwIfAny();
  return { ...resolved(options), tls, serviceUrl: serviceUrl as ServiceUrl };
}

function resolved(options: WireOptions): Omit<ResolvedWireOptions, 'serviceUrl' | 'tls'> {
  return {
    authentication: options.authentication,
    connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_WIRE_OPTIONS.connectTimeoutMs,
    requestTimeoutMs: options.requestTimeoutMs ?? DEFAULT_WIRE_OPTIONS.requestTimeoutMs,
    keepAliveMs: options.keepAliveMs ?? DEFAULT_WIRE_OPTIONS.keepAliveMs,
    operationTimeoutMs: options.operationTimeoutMs ?? DEFAULT_WIRE_OPTIONS.operationTimeoutMs,
    reconnectMinMs: options.reconnectMinMs ?? DEFAULT_WIRE_OPTIONS.reconnectMinMs,
    reconnectMaxMs: Math.max(
      options.reconnectMaxMs ?? DEFAULT_WIRE_OPTIONS.reconnectMaxMs,
      options.reconnectMinMs ?? 0,
    ),
    maxPendingBytes: options.maxPendingBytes ?? DEFAULT_WIRE_OPTIONS.maxPendingBytes,
    listenerName: options.listenerName,
    experimentalOrderedNegativeAck: options.experimentalOrderedNegativeAck ?? false,
    logger: options.logger === undefined ? undefined : limitedLog(options.logger, options.clock ?? systemClock),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemEnvironment.random,
  };
}

function checkAuthentication(authentication: unknown, check: OptionChecker): void {
  if (authentication === undefined || !check.object('authentication', authentication)) return;
  const { method, data } = authentication;
  check.required(
    authentication,
    { method: 'the name of a method such as token', data: 'a function that gives its data' },
    'authentication.',
  );
  check.nonEmptyString('authentication.method', method);
  check.function('authentication.data', data);
  check.function('authentication.refused', authentication['refused']);
}

function checkTlsAuthentication({ authentication, tls }: WireOptions, usesTls: boolean, check: OptionChecker): void {
  if ((authentication as Authentication | null | undefined)?.method !== 'tls') return;
  if (usesTls && tls?.cert !== undefined) return;
  check.problem('authentication by "tls" needs pulsar+ssl:// and the client\'s "tls.cert" and "tls.key"');
}

/** A password has no place in a service URL; who put one there must not find it in a log. */
function withoutUserInfo(url: unknown): unknown {
  return typeof url === 'string' ? url.replace(/\/\/.*@/, '//[redacted]@') : url;
}

/** Lines of one kind in 10 s, of the client as a whole: a cluster that is gone concerns every topic. */
const MAX_LOG_REPEATS = 10;

function limitedLog(logger: Logger, clock: Clock): LimitedLogger {
  // Topics, addresses and numbers do not make another kind of line.
  const kindOf = (message: string): string => message.replace(/\S+:\/\/\S+|"[^"]*"|[\w.-]*\d[\w.:-]*/g, '#');
  return new LimitedLogger({ logger: safeLogger(logger), clock, maxRepeats: MAX_LOG_REPEATS, kindOf });
}
