// What TLS is told, its checks, and the one context that all connections of a client share.
import { createSecureContext } from 'node:tls';
import type { ConnectionOptions, SecureContext, SecureContextOptions } from 'node:tls';
import { isIP } from 'node:net';
import { toError } from '../../core/errors.js';
import type { OptionChecker } from '../../core/options.js';
import type { HostPort } from './service-url.js';

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

export interface ResolvedTls {
  readonly context: SecureContext;
  readonly verifyHostName: boolean;
}

/**
 * Undefined when something is wrong, which `check` is told: that the files cannot be read, or do not belong together, is
 * a mistake of now and not of the first connection.
 */
export function resolveTls(tls: unknown, check: OptionChecker): ResolvedTls | undefined {
  const given = tls ?? {};
  if (!check.object('tls', given)) return undefined;
  check.unknownOptions(given, ['ca', 'cert', 'key', 'passphrase', 'verifyHostName'], 'tls.');
  check.boolean('tls.verifyHostName', given['verifyHostName']);
  const { ca, cert, key, passphrase, verifyHostName } = given as TlsOptions;
  if ((cert === undefined) !== (key === undefined)) {
    check.problem('"tls.cert" and "tls.key" belong together: give both or none');
    return undefined;
  }
  const files = Object.entries({ ca, cert, key, passphrase }).filter(([, value]) => value !== undefined);
  try {
    const context = createSecureContext(Object.fromEntries(files) as SecureContextOptions);
    return { context, verifyHostName: verifyHostName !== false };
  } catch (error) {
    // OpenSSL's words; they name what is wrong and show nothing of a key.
    check.problem(`"tls" cannot be used: ${toError(error).message}`);
    return undefined;
  }
}

export function tlsConnection({ host, port }: HostPort, tls: ResolvedTls): ConnectionOptions {
  return {
    host,
    port,
    secureContext: tls.context,
    // Whatever the environment says: who wants no proof must not ask for TLS.
    rejectUnauthorized: true,
    // The extension for the server's name is for names; an address is checked against the certificate all the same.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(tls.verifyHostName ? {} : { checkServerIdentity: () => undefined }),
  };
}
