// What OAuth2 client credentials are told, and its checks: no problem they report repeats a value that may be secret.
import { ConfigurationError } from '../../../core/errors.js';
import { OptionChecker, seconds } from '../../../core/options.js';
import { CLOCK_METHODS } from '../../../ports/clock.js';
import type { Clock } from '../../../ports/clock.js';
import type { HttpFetch } from '../../../ports/http.js';
import { systemClock } from '../../../system/system-clock.js';
import { systemHttp } from '../../../system/system-http.js';
import { kindOf } from './authentication.js';

export interface OAuth2Options {
  /**
   * Of the server that gives tokens; its `/.well-known/openid-configuration` names the token endpoint. `https://`, or
   * `http://` on this machine. @default `issuer_url` of `keyFile`
   */
  readonly issuerUrl?: string | undefined;
  /** @default `client_id` of `keyFile` */
  readonly clientId?: string | undefined;
  /** @default `client_secret` of `keyFile` */
  readonly clientSecret?: string | undefined;
  /** The contents of a key file, not its path: JSON with `client_id` and `client_secret`, as other clients take it. */
  readonly keyFile?: string | undefined;
  /** For whom the tokens are, as the broker's operator says. @default not sent */
  readonly audience?: string | undefined;
  /** What the tokens are to allow, separated by spaces. @default not sent */
  readonly scope?: string | undefined;
  /**
   * For one token, both requests together. Must be below the client's `connectTimeoutMs`, within which a connection needs
   * its token. @default 5 seconds
   */
  readonly requestTimeoutMs?: number | undefined;
  /** For other ways to send requests, say through a proxy. @default Node's `fetch` */
  readonly http?: HttpFetch | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface ResolvedOAuth2Options {
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly audience: string | undefined;
  readonly scope: string | undefined;
  readonly requestTimeoutMs: number;
  readonly http: HttpFetch;
  readonly clock: Clock;
}

const DEFAULT_REQUEST_TIMEOUT_MS = seconds(5);

const KNOWN: readonly (keyof OAuth2Options)[] = [
  'issuerUrl',
  'clientId',
  'clientSecret',
  'keyFile',
  'audience',
  'scope',
  'requestTimeoutMs',
  'http',
  'clock',
];

/** @throws ConfigurationError with every problem. */
export function resolveOAuth2Options(options: OAuth2Options): ResolvedOAuth2Options {
  const check = new OptionChecker('oauth2Authentication');
  const given: unknown = options;
  if (typeof given !== 'object' || given === null) {
    check.problem(`takes { issuerUrl, clientId, clientSecret }, got ${kindOf(given)}`);
    throw new ConfigurationError(check.problems);
  }
  check.unknownOptions(options, KNOWN);
  const file = keyFileOf(options.keyFile, check);
  const issuerUrl = options.issuerUrl ?? file['issuer_url'];
  const clientId = options.clientId ?? file['client_id'];
  const clientSecret = options.clientSecret ?? file['client_secret'];
  checkText('clientId', clientId, check);
  checkText('clientSecret', clientSecret, check);
  const issuerProblem = problemOfUrl(issuerUrl);
  if (issuerProblem !== undefined) check.problem(`"issuerUrl" ${issuerProblem}`);
  check.nonEmptyString('audience', options.audience);
  check.nonEmptyString('scope', options.scope);
  check.durationMs('requestTimeoutMs', options.requestTimeoutMs, { minMs: 1 });
  check.function('http', options.http);
  check.methods('clock', options.clock, CLOCK_METHODS, 'systemClock, say');
  check.throwIfAny();
  return {
    issuerUrl: issuerUrl as string,
    clientId: clientId as string,
    clientSecret: clientSecret as string,
    audience: options.audience,
    scope: options.scope,
    requestTimeoutMs: options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS,
    http: options.http ?? systemHttp,
    clock: options.clock ?? systemClock,
  };
}

/** What is wrong with a URL that secrets are to be sent to; undefined when nothing is. */
export function problemOfUrl(url: unknown): string | undefined {
  let parsed: URL;
  try {
    parsed = new URL(String(url));
  } catch {
    return `must be like "https://issuer.example.com", got ${kindOf(url)}`;
  }
  if (parsed.username !== '' || parsed.password !== '') return 'must not hold a user name or a password';
  if (parsed.protocol === 'https:') return undefined;
  if (parsed.protocol === 'http:' && isLoopback(parsed.hostname)) return undefined;
  return 'must begin with https:// (http:// only on this machine): secrets travel over it';
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function checkText(name: string, value: unknown, check: OptionChecker): void {
  if (typeof value === 'string' && value.trim() !== '') return;
  check.problem(`"${name}" must be a text that is not empty, given or in "keyFile", got ${kindOf(value)}`);
}

function keyFileOf(contents: unknown, check: OptionChecker): Readonly<Record<string, unknown>> {
  if (contents === undefined) return {};
  try {
    const parsed: unknown = typeof contents === 'string' ? JSON.parse(contents) : undefined;
    if (typeof parsed === 'object' && parsed !== null) return { ...parsed };
  } catch {
    // JSON's own errors show what they could not read.
  }
  check.problem('"keyFile" must be the contents of a key file, JSON with "client_id" and "client_secret"');
  return {};
}
