// The key that order is kept by: one text for equal keys, however they were written.
import type { EncodedMessage, MessageKey } from './message.js';

/**
 * The ordering key, else the key; undefined for a message that has neither and so no order to keep. What is there decides,
 * not its length: an empty key is a key (K-43).
 */
export function orderKeyOf({ orderingKey, key }: Pick<EncodedMessage, 'orderingKey' | 'key'>): string | undefined {
  const given = orderingKey ?? key;
  return given === undefined ? undefined : bytesText(given);
}

/** What user code sees of a key: text; base64 where the producer wrote bytes, as other clients show it. */
export function shownKey(key: MessageKey | undefined): string | undefined {
  return key instanceof Uint8Array ? Buffer.from(key).toString('base64') : key;
}

/** The same for a text and for its bytes, as brokers hash them: one character per byte. */
function bytesText(key: MessageKey): string {
  if (typeof key !== 'string') return Buffer.from(key).toString('latin1');
  // oxlint-disable-next-line no-control-regex -- ASCII is what this asks for
  return /^[\x00-\x7f]*$/.test(key) ? key : Buffer.from(key).toString('latin1');
}
