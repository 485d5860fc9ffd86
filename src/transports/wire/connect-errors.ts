// What a socket's error means: which of them come from certificates, where trying again cannot help before somebody
// replaces one. Told by the codes of Node and of its TLS, never by the text.
import { TransportError, isError } from '../../core/errors.js';
import type { ErrorCode } from '../../core/errors.js';
import { connectionLost } from './server-errors.js';

/** Node's codes for what is wrong with the certificate of the other side (its documentation, "X509 certificate error codes"). */
const CERTIFICATE_CODES: Readonly<Record<string, ErrorCode>> = {
  CERT_HAS_EXPIRED: 'CERTIFICATE_EXPIRED',
  CERT_NOT_YET_VALID: 'CERTIFICATE_EXPIRED',
  ERR_TLS_CERT_ALTNAME_INVALID: 'CERTIFICATE_NAME_MISMATCH',
  ERR_TLS_CERT_ALTNAME_FORMAT: 'CERTIFICATE_NAME_MISMATCH',
  HOSTNAME_MISMATCH: 'CERTIFICATE_NAME_MISMATCH',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'CERTIFICATE_UNTRUSTED',
  SELF_SIGNED_CERT_IN_CHAIN: 'CERTIFICATE_UNTRUSTED',
  UNABLE_TO_GET_ISSUER_CERT: 'CERTIFICATE_UNTRUSTED',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'CERTIFICATE_UNTRUSTED',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'CERTIFICATE_UNTRUSTED',
  UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY: 'CERTIFICATE_UNTRUSTED',
  CERT_SIGNATURE_FAILURE: 'CERTIFICATE_UNTRUSTED',
  CERT_CHAIN_TOO_LONG: 'CERTIFICATE_UNTRUSTED',
  CERT_REVOKED: 'CERTIFICATE_UNTRUSTED',
  CERT_UNTRUSTED: 'CERTIFICATE_UNTRUSTED',
  CERT_REJECTED: 'CERTIFICATE_UNTRUSTED',
  INVALID_CA: 'CERTIFICATE_UNTRUSTED',
  INVALID_PURPOSE: 'CERTIFICATE_UNTRUSTED',
  PATH_LENGTH_EXCEEDED: 'CERTIFICATE_UNTRUSTED',
};

/**
 * Alerts with which the other side refuses the certificate of this one (RFC 8446, 6.2); versions of OpenSSL differ in what
 * stands before ALERT.
 */
const REFUSES_OURS =
  /^ERR_SSL_.*ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED)$/;

/** @param what e.g. `cannot connect to broker:6651`. */
export function socketError(what: string, error: Error): TransportError {
  const code = codeOf(error);
  const ofCertificate = Object.hasOwn(CERTIFICATE_CODES, code) ? CERTIFICATE_CODES[code] : undefined;
  const text = `${what}: ${textOf(error)}`;
  if (ofCertificate !== undefined) {
    return new TransportError(ofCertificate, `${text} (${code})`, { retriable: false, cause: error });
  }
  if (!REFUSES_OURS.test(code)) return connectionLost(text, error);
  const refused = `${what}: the broker does not take the client's certificate (${code})`;
  return new TransportError('AUTHENTICATION_FAILED', refused, { retriable: false, cause: error });
}

function codeOf(error: Error): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** Of a host with several addresses Node gives one error for all, without a text of its own. */
function textOf(error: Error): string {
  if (error.message !== '') return error.message;
  const inner: unknown = (error as { readonly errors?: unknown }).errors;
  const texts = Array.isArray(inner) ? inner.filter(isError).map(({ message }) => message) : [];
  return texts.length === 0 ? codeOf(error) || error.name : texts.join('; ');
}
