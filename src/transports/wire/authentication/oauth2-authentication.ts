// OAuth2 client credentials: a token is fetched when it is first needed and again before it runs out; one request at a
// time serves all connections. Nothing that leaves this file but the token itself holds a secret.
import { TransportError, toError } from '../../../core/errors.js';
import { causeChain, errorMessage } from '../../../core/failure-report.js';
import type { HttpAnswer, HttpRequest } from '../../../ports/http.js';
import type { Authentication } from './authentication.js';
import { withoutSecrets } from './credentials.js';
import { problemOfUrl, resolveOAuth2Options } from './oauth2-options.js';
import type { OAuth2Options, ResolvedOAuth2Options } from './oauth2-options.js';
import { SharedRequest } from './shared-request.js';

/** Far above any token or configuration. */
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_SHOWN = 200;
/** A token is renewed once so much of its life is over: what is sent now must still hold when it arrives. */
const RENEWED_AT = 0.9;
/** A token that young is not fetched anew when brokers refuse it: the next one would not be better. */
const MIN_AGE_MS = 10_000;
/** Answers of a server that may be better soon; beyond them all from 500 on. */
const PASSING_STATUS: readonly number[] = [408, 425, 429];
/** What a token endpoint says when it does not accept the client or what it asks for (RFC 6749, 5.2). */
const REFUSED_STATUS: readonly number[] = [400, 401, 403];

interface Token {
  readonly text: string;
  readonly obtainedAtMs: number;
  readonly renewAtMs: number;
  readonly endsAtMs: number;
}

/** Tokens of an OAuth2 server by client id and secret (RFC 6749, 4.4). @throws ConfigurationError with every problem. */
export function oauth2Authentication(options: OAuth2Options): Authentication {
  return new OAuth2Authentication(resolveOAuth2Options(options));
}

class OAuth2Authentication implements Authentication {
  readonly method = 'token';
  readonly #options: ResolvedOAuth2Options;
  readonly #request = new SharedRequest((abandoned) => this.#withinTime(abandoned));
  #token: Token | undefined;
  #endpoint: string | undefined;

  constructor(options: ResolvedOAuth2Options) {
    this.#options = options;
  }

  /** @throws TransportError CREDENTIALS_UNAVAILABLE, AUTHENTICATION_FAILED (not retriable). */
  async data(signal?: AbortSignal): Promise<string> {
    const known = this.#token;
    if (known !== undefined && this.#options.clock.now() < known.renewAtMs) return known.text;
    try {
      return (await this.#request.result(signal)).text;
    } catch (error) {
      if (signal?.aborted === true) throw error;
      // A server that is down for a moment costs nothing while the token still holds.
      const passing = error instanceof TransportError && error.retriable;
      if (passing && known !== undefined && this.#options.clock.now() < known.endsAtMs) return known.text;
      throw error;
    }
  }

  refused(): boolean {
    const known = this.#token;
    if (known === undefined || this.#options.clock.now() - known.obtainedAtMs < MIN_AGE_MS) return false;
    this.#token = undefined;
    return true;
  }

  async #withinTime(abandoned: AbortSignal): Promise<Token> {
    const { clock, requestTimeoutMs } = this.#options;
    const late = new AbortController();
    const timer = clock.setTimer(requestTimeoutMs, () => late.abort());
    const abandon = (): void => late.abort();
    abandoned.addEventListener('abort', abandon, { once: true });
    try {
      return (this.#token = await this.#fetchToken(late.signal));
    } catch (error) {
      // Whatever it was: the next request finds the endpoint anew.
      this.#endpoint = undefined;
      if (abandoned.aborted || !late.signal.aborted) throw error;
      throw this.#unavailable(this.#options.issuerUrl, `nothing within ${requestTimeoutMs} ms`);
    } finally {
      abandoned.removeEventListener('abort', abandon);
      timer.cancel();
    }
  }

  async #fetchToken(signal: AbortSignal): Promise<Token> {
    const { clock, clientId, clientSecret, audience, scope } = this.#options;
    const url = (this.#endpoint ??= await this.#findEndpoint(signal));
    const obtainedAtMs = clock.now();
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    });
    if (audience !== undefined) form.set('audience', audience);
    if (scope !== undefined) form.set('scope', scope);
    const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
    const answer = await this.#send({ method: 'POST', url, headers, body: form.toString(), signal });
    const fields = fieldsOf(answer.body);
    if (REFUSED_STATUS.includes(answer.status)) throw this.#refusedBy(url, answer.status, fields);
    this.#checkStatus(url, answer.status);
    const { access_token: text, expires_in: expires } = fields;
    if (typeof text !== 'string' || text === '') throw this.#unavailable(url, 'an answer without "access_token"');
    // Without it nobody knows how long the token holds: it is fetched anew each time.
    const livesMs = Number.isFinite(Number(expires)) ? Math.max(0, Number(expires ?? 0)) * 1_000 : 0;
    return { text, obtainedAtMs, renewAtMs: obtainedAtMs + livesMs * RENEWED_AT, endsAtMs: obtainedAtMs + livesMs };
  }

  async #findEndpoint(signal: AbortSignal): Promise<string> {
    const url = `${this.#options.issuerUrl.replace(/\/+$/, '')}/.well-known/openid-configuration`;
    const answer = await this.#send({ method: 'GET', url, headers: { accept: 'application/json' }, signal });
    this.#checkStatus(url, answer.status);
    const endpoint = fieldsOf(answer.body)['token_endpoint'];
    const problem = problemOfUrl(endpoint);
    if (problem === undefined) return endpoint as string;
    throw this.#unavailable(url, `its "token_endpoint" ${problem}`, false);
  }

  async #send(request: Omit<HttpRequest, 'maxBytes'>): Promise<HttpAnswer> {
    try {
      return await this.#options.http({ ...request, maxBytes: MAX_ANSWER_BYTES });
    } catch (error) {
      const failure = toError(error);
      const causes = causeChain(failure);
      // Not as its cause: whoever sends the request may keep all of it, the secret included, in the error.
      throw this.#unavailable(request.url, `${errorMessage(failure)}${causes === '' ? '' : ` <- ${causes}`}`);
    }
  }

  #checkStatus(url: string, status: number): void {
    if (status >= 200 && status < 300) return;
    throw this.#unavailable(url, `status ${status}`, status >= 500 || PASSING_STATUS.includes(status));
  }

  #refusedBy(url: string, status: number, fields: Readonly<Record<string, unknown>>): TransportError {
    const said = [fields['error'], fields['error_description']].filter((text) => typeof text === 'string').join(', ');
    const words = said === '' ? '' : `, "${this.#shown(said)}"`;
    const text = `oauth2: ${url} refused client "${this.#options.clientId}" with status ${status}${words}`;
    return new TransportError('AUTHENTICATION_FAILED', text, { retriable: false });
  }

  #unavailable(url: string, what: string, retriable = true): TransportError {
    return new TransportError('CREDENTIALS_UNAVAILABLE', `oauth2: no token from ${url}: ${this.#shown(what)}`, {
      retriable,
    });
  }

  /** Words of others, who know the secret. */
  #shown(text: string): string {
    const { clientSecret } = this.#options;
    const encoded = new URLSearchParams({ s: clientSecret }).toString().slice(2);
    return withoutSecrets(text, [clientSecret, encoded, encodeURIComponent(clientSecret)]).slice(0, MAX_SHOWN);
  }
}

/** The fields of a JSON object; none when it is not one. */
function fieldsOf(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
