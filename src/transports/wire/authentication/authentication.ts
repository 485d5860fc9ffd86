// Who a client is: the seam that every kind of credentials fits into, and the kinds that need no network.
// Secrets live in closures and private fields only, so that no log line and no `util.inspect` shows them.
import { ConfigurationError, TransportError } from '../../../core/errors.js';
import { OptionChecker } from '../../../core/options.js';

/** Who this client is. An implementation must keep what is secret out of its errors: they are logged. */
export interface Authentication {
  /** The broker's name of it, e.g. `token`. */
  readonly method: string;
  /**
   * What the broker is given, asked at each connect and each time the broker wants fresh credentials. An error counts as
   * passing and is asked again later, unless it is a TransportError that says it is not `retriable`.
   * @param signal aborts when the connection that asks has been given up; who has nothing to end may ignore it.
   */
  data(signal?: AbortSignal): string | Uint8Array | Promise<string | Uint8Array>;
  /**
   * The broker did not take, or wants no longer, what `data` gave last. Returns whether `data` would give something else
   * now: then the broker is asked once more at once. For those that keep what they gave.
   */
  refused?(): boolean;
}

/** A text, or what supplies it: called at each connect and whenever the broker asks for fresh credentials. */
export type Secret = string | (() => string | Promise<string>);

/**
 * @param token a token as the broker's operator gives it, without a prefix; white space around it, say from a file, is
 *   left out. Give a function for one that expires. @throws ConfigurationError
 */
export function tokenAuthentication(token: Secret): Authentication {
  const problem = problemOfSecret('token', token);
  if (problem !== undefined) throw new ConfigurationError([`tokenAuthentication: ${problem}`]);
  return { method: 'token', data: async () => (await textOf('token', token)).trim() };
}

export interface BasicAuthenticationOptions {
  /** Without `:`, at which brokers part the two. */
  readonly username: Secret;
  /** Brokers up to 4.0 refuse one with `:` in it. */
  readonly password: Secret;
}

/** User name and password. Over `pulsar://` anybody on the way can read both. @throws ConfigurationError */
export function basicAuthentication(options: BasicAuthenticationOptions): Authentication {
  const { username, password } = checkedBasic(options);
  return {
    method: 'basic',
    data: async () => {
      const [name, secret] = await Promise.all([textOf('username', username), textOf('password', password)]);
      if (name.includes(':')) throw unusable('the username has a ":", at which brokers part it from the password');
      return `${name}:${secret}`;
    },
  };
}

/** Mutual TLS: the client is who its certificate says; needs `tls.cert` and `tls.key` of the client. */
export function tlsAuthentication(): Authentication {
  return { method: 'tls', data: () => '' };
}

function checkedBasic(options: unknown): BasicAuthenticationOptions {
  const check = new OptionChecker('basicAuthentication');
  if (typeof options !== 'object' || options === null) {
    check.problem(`takes { username, password }, got ${kindOf(options)}`);
    throw new ConfigurationError(check.problems);
  }
  const { username, password } = options as Record<string, unknown>;
  check.unknownOptions(options, ['username', 'password']);
  for (const problem of [problemOfSecret('username', username), problemOfSecret('password', password)]) {
    if (problem !== undefined) check.problem(problem);
  }
  if (typeof username === 'string' && username.includes(':')) check.problem('"username" must not have a ":"');
  check.throwIfAny();
  return options as BasicAuthenticationOptions;
}

/** What is wrong with it; never what it is. */
export function problemOfSecret(name: string, secret: unknown): string | undefined {
  if (typeof secret === 'function' || (typeof secret === 'string' && secret.trim() !== '')) return undefined;
  return `"${name}" must be a text that is not empty, or a function that gives one, got ${kindOf(secret)}`;
}

async function textOf(name: string, secret: Secret): Promise<string> {
  const text: unknown = typeof secret === 'function' ? await secret() : secret;
  if (typeof text === 'string' && text.trim() !== '') return text;
  throw unusable(`the function for "${name}" gave ${kindOf(text)} instead of a text`);
}

function unusable(what: string): TransportError {
  return new TransportError('AUTHENTICATION_FAILED', `authentication: ${what}`, { retriable: false });
}

/** Never the value: it may be the secret, of a wrong type or in a wrong place. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return value.trim() === '' ? 'an empty text' : 'a text';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
