// Asks an authentication for what a CONNECT carries, and keeps what it is out of the errors about it.
import { PulseworkError, TransportError, toError } from '../../../core/errors.js';
import type { Authentication } from './authentication.js';

export interface Credentials {
  readonly authMethodName?: string;
  readonly authData?: Uint8Array;
}

/** @throws TransportError CREDENTIALS_UNAVAILABLE (retriable), AUTHENTICATION_FAILED, or the supplier's own. */
export async function credentialsOf(
  authentication: Authentication | undefined,
  signal: AbortSignal,
): Promise<Credentials> {
  if (authentication === undefined) return {};
  const { method } = authentication;
  let data: unknown;
  try {
    data = await authentication.data(signal);
  } catch (error) {
    if (error instanceof PulseworkError) throw error;
    const text = `authentication "${method}": its data could not be had: ${toError(error).message}`;
    throw new TransportError('CREDENTIALS_UNAVAILABLE', text, { retriable: true, cause: error });
  }
  if (typeof data === 'string') return { authMethodName: method, authData: Buffer.from(data) };
  if (data instanceof Uint8Array) return { authMethodName: method, authData: data };
  const text = `authentication "${method}": data() gave something that is neither a text nor bytes`;
  throw new TransportError('AUTHENTICATION_FAILED', text, { retriable: false });
}

/** Shorter ones are parts of ordinary words, and no secrets. */
const MIN_SECRET_LENGTH = 4;

/** `text` of somebody who was told `secrets`: where it repeats one of them, that is left out. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .reduce((result, secret) => result.replaceAll(secret, '[redacted]'), text);
}
