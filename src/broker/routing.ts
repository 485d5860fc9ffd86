// Which partition a message goes to. By the hash that Java's producers use unless told otherwise, so that a key lands
// on the same partition whether it was published here or by a Java producer.
import { javaStringHash, keyText } from '../core/key-hash.js';
import type { EncodedMessage } from '../core/message.js';

/** @param turn counts up with each message; used for messages without a key. */
export function partitionFor(message: EncodedMessage, partitions: number, turn: number): number {
  return (message.key === undefined ? turn : javaStringHash(keyText(message.key))) % partitions;
}
