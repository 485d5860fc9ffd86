// The options of the wire client: what they mean, their defaults, their checks.
import { ConfigurationError, describeValue } from '../../core/errors.js';
import { OptionChecker, minutes, seconds } from '../../core/options.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { systemEnvironment } from '../../system/environment.js';
import { systemClock } from '../../system/system-clock.js';
import { parseServiceUrl } from './service-url.js';
import type { ServiceUrl } from './service-url.js';

/** Who this client is. `data` is asked at each connect and each time the broker wants fresh credentials. */
export interface Authentication {
  /** The broker's name of it, e.g. `token`. */
  readonly method: string;
  data(): string | Uint8Array | Promise<string | Uint8Array>;
}

export interface TlsOptions {
  /** PEM; replaces the authorities that Node knows. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[] | undefined;
  /** PEM, the client's certificate and its key. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  readonly passphrase?: string | undefined;
  /** Whether the certificate must name the host. @default true */
  readonly verifyHostName?: boolean | undefined;
}

export interface WireOptions {
  /** `pulsar://host:6650[,host:port…]`, `pulsar+ssl://host:6651`. */
  readonly serviceUrl: string;
  /** @default none */
  readonly authentication?: Authentication | undefined;
  /** Only with `pulsar+ssl://`. */
  readonly tls?: TlsOptions | undefined;
  /** From the first byte to CONNECTED. @default 10 seconds, as Java's client */
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
  readonly tls: TlsOptions;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly operationTimeoutMs: number;
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  readonly maxPendingBytes: number;
  readonly listenerName: string | undefined;
  readonly logger: Logger | undefined;
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
    check.problem(`"serviceUrl" ${serviceUrl}, got ${describeValue(options.serviceUrl)}`);
  }
  for (const name of ['connectTimeoutMs', 'requestTimeoutMs', 'keepAliveMs', 'reconnectMinMs'] as const) {
    check.durationMs(name, options[name], { minMs: 1 });
  }
  check.durationMs('operationTimeoutMs', options.operationTimeoutMs);
  const reconnectMinMs = options.reconnectMinMs ?? DEFAULT_WIRE_OPTIONS.reconnectMinMs;
  check.durationMs('reconnectMaxMs', options.reconnectMaxMs, { minMs: reconnectMinMs });
  check.positiveInteger('maxPendingBytes', options.maxPendingBytes);
  check.nonEmptyString('listenerName', options.listenerName);
  check.function('random', options.random);
  checkAuthentication(options.authentication, check);
  if (options.tls !== undefined && typeof serviceUrl !== 'string' && !serviceUrl.tls) {
    check.problem('"tls" needs a serviceUrl that starts with pulsar+ssl://');
  }
  checkTls(options.tls, check);
  check.throwIfAny();
  return { ...resolved(options), serviceUrl: serviceUrl as ServiceUrl };
}

function resolved(options: WireOptions): Omit<ResolvedWireOptions, 'serviceUrl'> {
  return {
    authentication: options.authentication,
    tls: options.tls ?? {},
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
    logger: options.logger,
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
}

function checkTls(tls: unknown, check: OptionChecker): void {
  if (tls === undefined || !check.object('tls', tls)) return;
  check.unknownOptions(tls, ['ca', 'cert', 'key', 'passphrase', 'verifyHostName']);
  check.boolean('tls.verifyHostName', tls['verifyHostName']);
  if ((tls['cert'] === undefined) !== (tls['key'] === undefined)) {
    check.problem('"tls.cert" and "tls.key" belong together: give both or none');
  }
}

/** A token, or what supplies one: it is called at each connect and whenever the broker asks for a fresh one. */
export function tokenAuthentication(token: string | (() => string | Promise<string>)): Authentication {
  const data = typeof token === 'function' ? token : () => token;
  return { method: 'token', data };
}
