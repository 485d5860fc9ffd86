// Why a message, or a producer, is refused by this client before or after the broker has seen it. All are final.
import { TransportError } from '../../core/errors.js';

/** Of a transaction that ended before the connection was back. */
export function endedUnsent(topic: string): TransportError {
  const text = `SEND to ${topic}: its transaction ended before it had a receipt`;
  return new TransportError('TRANSACTION_ENDED', text, { retriable: false });
}

export function messageTooLarge(topic: string, bytes: number, limit: number): TransportError {
  const text = `message for "${topic}" has ${bytes} bytes, the broker takes ${limit}`;
  return new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
}

/** A broker that deduplicates has stored what came behind it, and takes what is before that for a repetition. */
export function overtaken(topic: string): TransportError {
  const text = `a message for "${topic}" was changed on its way and is not stored: later ones were, so the broker drops it as a repetition; publish it with a new sequence id`;
  return new TransportError('BROKER_ERROR', text, { retriable: false });
}

/** Sending it again would store it once more, at such a place again. */
export function storedOutOfReach(topic: string): TransportError {
  const text = `a message for "${topic}" was stored, but its message id has a number above 2^53-1`;
  return new TransportError('MESSAGE_ID_INVALID', text, { retriable: false });
}

/** The broker drops what is not above the last sequence id of a name, and there is no number above it here. */
export function nameUsedUp(topic: string, name: string): TransportError {
  const text = `producer name "${name}" on "${topic}" was used with a sequence id above 2^53-1; publish under another name`;
  return new TransportError('NOT_SUPPORTED', text, { retriable: false });
}
