// The options of the adapter for the official client: what they mean, their defaults, their checks. The addon ignores what
// it does not know and takes a wrong type for nothing, so everything is checked before it gets there.
import { ConfigurationError, describeValue } from '../../core/errors.js';
import { OptionChecker, seconds } from '../../core/options.js';
import { CLOCK_METHODS } from '../../ports/clock.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import { systemClock } from '../../system/system-clock.js';
import type { OfficialClient, OfficialModule } from './official-client.js';
import { missingInModule } from './official-client.js';
import type { TokenSupplier } from './safe-callbacks.js';

export type PulsarAuthentication =
  | { readonly method: 'token'; readonly token: string | TokenSupplier }
  | { readonly method: 'basic'; readonly username: string; readonly password: string }
  | { readonly method: 'tls'; readonly certificatePath: string; readonly privateKeyPath: string }
  | {
      readonly method: 'oauth2';
      readonly issuerUrl: string;
      readonly clientId?: string | undefined;
      readonly clientSecret?: string | undefined;
      /** A `file://` or `data:` URL of the credentials. */
      readonly privateKey?: string | undefined;
      readonly audience?: string | undefined;
      readonly scope?: string | undefined;
    };

/** Files, since the client reads them itself. */
export interface PulsarTlsOptions {
  /** PEM. @default what the client was installed with */
  readonly trustCertsFilePath?: string | undefined;
  readonly certificateFilePath?: string | undefined;
  readonly privateKeyFilePath?: string | undefined;
  /** Whether the certificate must name the host. @default true; the client's own default is false */
  readonly validateHostname?: boolean | undefined;
  /** Takes any certificate. @default false */
  readonly allowInsecureConnection?: boolean | undefined;
}

export interface PulsarOptions {
  /** `pulsar://host:6650[,host:port…]` or `pulsar+ssl://host:6651`. Not with `client`. */
  readonly serviceUrl?: string | undefined;
  /** A `Client` of `pulsar-client` that is yours: it stays open when the transport closes. @default one is made */
  readonly client?: OfficialClient | undefined;
  /** What `import('pulsar-client')` gives, for programs where this package cannot find it (bundlers). @default it is imported */
  readonly module?: OfficialModule | undefined;
  /** Not with `client`. @default none */
  readonly authentication?: PulsarAuthentication | undefined;
  /** Only with `pulsar+ssl://`; not with `client`. */
  readonly tls?: PulsarTlsOptions | undefined;
  /** How long opening a consumer or a producer is tried; whole seconds, rounded up. Not with `client`. @default 30 seconds */
  readonly operationTimeoutMs?: number | undefined;
  /** Not with `client`. @default 10 seconds */
  readonly connectTimeoutMs?: number | undefined;
  /** Threads of the addon for the network. Not with `client`. @default 1 */
  readonly ioThreads?: number | undefined;
  /** Which of its advertised addresses a broker should name. Not with `client`. @default the broker's own choice */
  readonly listenerName?: string | undefined;
  /** From `publish` to the receipt; the client has no way to wait for ever. @default 30 seconds */
  readonly sendTimeoutMs?: number | undefined;
  /** Messages of one publisher without a receipt; further ones wait here, in order. @default 1,000, the client's queue */
  readonly maxPendingMessages?: number | undefined;
  /** Of payloads. @default 'None' */
  readonly compression?: PulsarCompression | undefined;
  /** What sends a key to its partition. The client's own default fits no other client. @default 'java', as in Java */
  readonly keyHash?: 'java' | 'murmur3' | undefined;
  /**
   * Payload, keys and properties of one message together. The client does not tell what its broker takes.
   * @default 5 MiB less 64 KiB: Pulsar's limit, with room for what is stored beside it
   */
  readonly maxMessageBytes?: number | undefined;
  /** Gets the client's lines too; it has one log handler and one level for the whole process. @default none, it is silent */
  readonly logger?: Logger | undefined;
  /** Of the first client in the process. @default 'warn' */
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type PulsarCompression = 'None' | 'Zlib' | 'LZ4' | 'ZSTD' | 'SNAPPY';

export const DEFAULT_PULSAR_OPTIONS = {
  operationTimeoutMs: seconds(30),
  connectTimeoutMs: seconds(10),
  ioThreads: 1,
  sendTimeoutMs: seconds(30),
  maxPendingMessages: 1_000,
  compression: 'None',
  keyHash: 'java',
  maxMessageBytes: 5 * 1024 * 1024 - 64 * 1024,
  logLevel: 'warn',
} as const;

export interface ResolvedPulsarOptions {
  readonly serviceUrl: string | undefined;
  readonly client: OfficialClient | undefined;
  readonly module: OfficialModule | undefined;
  readonly authentication: PulsarAuthentication | undefined;
  readonly tls: PulsarTlsOptions;
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly ioThreads: number;
  readonly listenerName: string | undefined;
  readonly sendTimeoutMs: number;
  readonly maxPendingMessages: number;
  readonly compression: PulsarCompression;
  readonly keyHash: 'java' | 'murmur3';
  readonly maxMessageBytes: number;
  readonly logger: Logger | undefined;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly clock: Clock;
}

/** What the addon cuts numbers to: 2^32 would be 0 to it, and 2^32 + 1 a timeout of 1 ms. */
export const MAX_INT32 = 2 ** 31 - 1;

/** The client sets up a place for each thread at once: a number without end ends the process. */
const MAX_IO_THREADS = 1_000;

const MOST = {
  operationTimeoutMs: MAX_INT32,
  connectTimeoutMs: MAX_INT32,
  sendTimeoutMs: MAX_INT32,
  maxPendingMessages: MAX_INT32,
  ioThreads: MAX_IO_THREADS,
} as const;

/** Of a client that is made here; who brings one has set them. */
const OF_OWN_CLIENT = [
  'serviceUrl',
  'authentication',
  'tls',
  'operationTimeoutMs',
  'connectTimeoutMs',
  'ioThreads',
  'listenerName',
  'logLevel',
] as const;

const KNOWN: readonly (keyof PulsarOptions)[] = [
  ...OF_OWN_CLIENT,
  'client',
  'module',
  'sendTimeoutMs',
  'maxPendingMessages',
  'compression',
  'keyHash',
  'maxMessageBytes',
  'logger',
  'clock',
];

const CLIENT_METHODS = ['subscribe', 'createProducer', 'getPartitionsForTopic', 'close'] as const;
const LOGGER_METHODS = ['debug', 'info', 'warn', 'error'] as const;

/** @throws ConfigurationError with every problem. */
export function resolvePulsarOptions(options: PulsarOptions): ResolvedPulsarOptions {
  const check = new OptionChecker('pulsar');
  const unchecked: unknown = options;
  if (!check.object('options', unchecked)) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, KNOWN);
  checkSource(options, check);
  check.durationMs('operationTimeoutMs', options.operationTimeoutMs, { minMs: 1 });
  check.durationMs('connectTimeoutMs', options.connectTimeoutMs, { minMs: 1 });
  check.durationMs('sendTimeoutMs', options.sendTimeoutMs, { minMs: 1 });
  for (const name of ['ioThreads', 'maxPendingMessages', 'maxMessageBytes'] as const)
    check.positiveInteger(name, options[name]);
  for (const [name, most] of Object.entries(MOST)) {
    const given = options[name as keyof typeof MOST];
    if (typeof given === 'number' && given > most) check.problem(`"${name}" must be at most ${most}, got ${given}`);
  }
  check.nonEmptyString('listenerName', options.listenerName);
  check.oneOf('compression', options.compression, ['None', 'Zlib', 'LZ4', 'ZSTD', 'SNAPPY']);
  check.oneOf('keyHash', options.keyHash, ['java', 'murmur3']);
  check.oneOf('logLevel', options.logLevel, LOGGER_METHODS);
  check.methods('logger', options.logger, LOGGER_METHODS, 'consoleLogger, pinoLogger(...)');
  check.methods('clock', options.clock, CLOCK_METHODS, 'systemClock');
  checkAuthentication(options.authentication, check);
  checkTls(options, check);
  check.throwIfAny();
  return resolved(options);
}

function resolved(options: PulsarOptions): ResolvedPulsarOptions {
  const defaults = DEFAULT_PULSAR_OPTIONS;
  return {
    serviceUrl: options.serviceUrl,
    client: options.client,
    module: options.module,
    authentication: options.authentication,
    tls: options.tls ?? {},
    operationTimeoutMs: options.operationTimeoutMs ?? defaults.operationTimeoutMs,
    connectTimeoutMs: options.connectTimeoutMs ?? defaults.connectTimeoutMs,
    ioThreads: options.ioThreads ?? defaults.ioThreads,
    listenerName: options.listenerName,
    sendTimeoutMs: options.sendTimeoutMs ?? defaults.sendTimeoutMs,
    maxPendingMessages: options.maxPendingMessages ?? defaults.maxPendingMessages,
    compression: options.compression ?? defaults.compression,
    keyHash: options.keyHash ?? defaults.keyHash,
    maxMessageBytes: options.maxMessageBytes ?? defaults.maxMessageBytes,
    logger: options.logger,
    logLevel: options.logLevel ?? defaults.logLevel,
    clock: options.clock ?? systemClock,
  };
}

function checkSource(options: PulsarOptions, check: OptionChecker): void {
  const { serviceUrl, client, module } = options as Readonly<Record<keyof PulsarOptions, unknown>>;
  check.methods('client', client, CLIENT_METHODS, 'new Client(...) of pulsar-client');
  const missing = module === undefined ? [] : missingInModule(module);
  if (missing.length > 0) {
    const lacks = `it has no ${missing.join(', ')}`;
    check.problem(`"module" must be what import('pulsar-client') gives, got ${describeValue(module)}: ${lacks}`);
  }
  if (client !== undefined) {
    const wrong = OF_OWN_CLIENT.filter((name) => options[name] !== undefined);
    for (const name of wrong) check.problem(`"${name}" is for a client that is made here; "client" was made already`);
  } else if (typeof serviceUrl !== 'string' || !/^pulsar(\+ssl)?:\/\/[^/?#@\s\0]+\/?$/.test(serviceUrl)) {
    const rule = 'must be like "pulsar://host:6650" or "pulsar+ssl://host:6651"';
    check.problem(`"serviceUrl" ${rule}, got ${describeValue(serviceUrl)}`);
  }
}

function checkTls({ serviceUrl, tls }: PulsarOptions, check: OptionChecker): void {
  if (tls === undefined || !check.object('tls', tls)) return;
  const files = ['trustCertsFilePath', 'certificateFilePath', 'privateKeyFilePath'] as const;
  check.unknownOptions(tls, [...files, 'validateHostname', 'allowInsecureConnection'], 'tls.');
  for (const name of files) check.nonEmptyString(`tls.${name}`, tls[name]);
  check.boolean('tls.validateHostname', tls['validateHostname']);
  check.boolean('tls.allowInsecureConnection', tls['allowInsecureConnection']);
  if (typeof serviceUrl === 'string' && !serviceUrl.startsWith('pulsar+ssl://')) {
    check.problem('"tls" needs a serviceUrl that starts with pulsar+ssl://');
  }
  if ((tls['certificateFilePath'] === undefined) !== (tls['privateKeyFilePath'] === undefined)) {
    check.problem('"tls.certificateFilePath" and "tls.privateKeyFilePath" belong together: give both or none');
  }
}

/** What each method needs, and what it takes beside that. */
const AUTHENTICATION_FIELDS: Readonly<Record<string, { needs: readonly string[]; takes: readonly string[] }>> = {
  token: { needs: ['token'], takes: [] },
  basic: { needs: ['username', 'password'], takes: [] },
  tls: { needs: ['certificatePath', 'privateKeyPath'], takes: [] },
  oauth2: { needs: ['issuerUrl'], takes: ['clientId', 'clientSecret', 'privateKey', 'audience', 'scope'] },
};

/** Names what is wrong and never what was given: these are secrets. */
function checkAuthentication(authentication: unknown, check: OptionChecker): void {
  if (authentication === undefined || !check.object('authentication', authentication)) return;
  const methods = Object.keys(AUTHENTICATION_FIELDS);
  check.required(authentication, { method: `one of ${methods.join(', ')}` }, 'authentication.');
  check.oneOf('authentication.method', authentication['method'], methods);
  const method = authentication['method'];
  const fields = typeof method === 'string' && methods.includes(method) ? AUTHENTICATION_FIELDS[method] : undefined;
  if (fields === undefined) return;
  const all = [...fields.needs, ...fields.takes];
  check.unknownOptions(authentication, ['method', ...all], 'authentication.');
  for (const name of all) {
    const value = authentication[name];
    const isOptional = !fields.needs.includes(name);
    const isSupplier = name === 'token' && typeof value === 'function';
    if ((isOptional && value === undefined) || isSupplier || (typeof value === 'string' && value !== '')) continue;
    const rule =
      name === 'token' ? 'a text that is not empty, or a function that gives one' : 'a text that is not empty';
    check.problem(`"authentication.${name}" must be ${rule}`);
  }
}
