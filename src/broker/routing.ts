// Which partition a message goes to. By the hash that Java's producers use unless told otherwise, so that a key lands
// on the same partition whether it was published here or by a Java producer.
import type { EncodedMessage, MessageKey } from '../core/message.js';

/** Java's String.hashCode over UTF-16 units, without its sign. */
export function javaStringHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash & 0x7fffffff;
}

/** @param turn counts up with each message; used for messages without a key. */
export function partitionFor(message: EncodedMessage, partitions: number, turn: number): number {
  return (message.key === undefined ? turn : javaStringHash(keyText(message.key))) % partitions;
}

/** Bytes travel as base64, and that text is what producers hash. */
function keyText(key: MessageKey): string {
  return typeof key === 'string' ? key : Buffer.from(key.buffer, key.byteOffset, key.length).toString('base64');
}
