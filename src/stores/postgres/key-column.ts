// Keys as they stand in a column with an index: PostgreSQL takes 2,704 bytes there.
import { createHash } from 'node:crypto';
import { storedText } from '../../core/stored-text.js';

const MAX_BYTES = 2_000;

/** The key itself where it can be. Two keys never become one. */
export function keyColumn(key: string): string {
  const text = storedText(key);
  if (Buffer.byteLength(text) <= MAX_BYTES) return text;
  // A text that begins with a quotation mark otherwise ends with one too.
  return `"sha256 ${createHash('sha256').update(text).digest('hex')}`;
}
