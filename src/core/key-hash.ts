// Hashes of message keys. Partitions, Key_Shared and the choice of the active Failover consumer depend on these very
// numbers, so they must agree with Java's: a key then lands in the same place whoever publishes it.
import type { MessageKey } from './message.js';

const encoder = new TextEncoder();
/** Keys are short: one buffer for all of them saves an allocation per message. Used within one call only. */
const scratch = new Uint8Array(1024);

/** Bytes travel as base64, and that text is what producers hash for the partition. */
export function keyText(key: MessageKey): string {
  return typeof key === 'string' ? key : Buffer.from(key.buffer, key.byteOffset, key.length).toString('base64');
}

/** Java's String.hashCode over UTF-16 units, without its sign: the partition of a key unless a producer says otherwise. */
export function javaStringHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash & 0x7fffffff;
}

/**
 * Murmur3 x86 32-bit with seed 0, cut to 31 bits as Pulsar cuts it (K-02). @returns 0 to 2^31-1; text is hashed as UTF-8.
 */
export function murmur3(key: string | Uint8Array): number {
  if (typeof key !== 'string') return hashBytes(key, key.length);
  if (key.length * 3 > scratch.length) return murmur3(encoder.encode(key));
  return hashBytes(scratch, encoder.encodeInto(key, scratch).written);
}

function hashBytes(bytes: Uint8Array, length: number): number {
  let hash = 0;
  const blocksEnd = length - (length % 4);
  for (let i = 0; i < blocksEnd; i += 4) {
    hash ^= scrambled(littleEndian(bytes, i, 4));
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0;
  }
  if (blocksEnd < length) hash ^= scrambled(littleEndian(bytes, blocksEnd, length - blocksEnd));
  hash ^= length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) & 0x7fffffff;
}

function littleEndian(bytes: Uint8Array, from: number, count: number): number {
  let word = 0;
  for (let i = count - 1; i >= 0; i--) word = (word << 8) | (bytes[from + i] ?? 0);
  return word;
}

function scrambled(word: number): number {
  const mixed = Math.imul(word, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}
