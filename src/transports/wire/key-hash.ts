// Which partition a key belongs to: the hash that Java's producers use unless told otherwise, so that a key lands on the
// same partition whoever publishes it.
import type { MessageKey } from '../../core/message.js';

/** Java's String.hashCode over UTF-16 units, without its sign. */
export function javaStringHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash & 0x7fffffff;
}

/** Bytes travel as base64, and that text is what producers hash. */
export function keyText(key: MessageKey): string {
  return typeof key === 'string' ? key : Buffer.from(key.buffer, key.byteOffset, key.length).toString('base64');
}
