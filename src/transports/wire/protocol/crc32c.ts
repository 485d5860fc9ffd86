// CRC-32C (Castagnoli), which protects metadata and payload of every message. Sixteen bytes per step over sixteen tables
// where there are many, eight where there are few: a view of words, or a call into WebAssembly, would cost more there.

/** The Castagnoli polynomial with its bits in reverse. */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 16;
const TABLES = buildTables();
/** From here on a view of words is worth making. */
const MANY_BYTES = 256;
const WORDS_START_LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** The checksum of `bytes[start, end)`, 0 to 2^32-1. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  if (end - start < MANY_BYTES || !WORDS_START_LOW) return ~overBytes(-1, bytes, start, end) >>> 0;
  const wordsAt = start + (-(bytes.byteOffset + start) & 3);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + wordsAt, ((end - wordsAt) >>> 4) * 4);
  const crc = overWords(overBytes(-1, bytes, start, wordsAt), words);
  return ~overBytes(crc, bytes, wordsAt + words.byteLength, end) >>> 0;
}

function overBytes(before: number, bytes: Uint8Array, start: number, end: number): number {
  const tables = TABLES;
  let crc = before;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    crc ^= wordAt(bytes, at);
    crc = fourBytes(tables, 0x400, crc) ^ fourBytes(tables, 0, wordAt(bytes, at + 4));
  }
  for (; at < end; at++) crc = (tables[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  return crc;
}

/** @param words a multiple of four, the lowest byte first. */
function overWords(before: number, words: Int32Array): number {
  const tables = TABLES;
  let crc = before;
  for (let at = 0; at < words.length; at += 4) {
    crc =
      fourBytes(tables, 0xc00, crc ^ (words[at] as number)) ^
      fourBytes(tables, 0x800, words[at + 1] as number) ^
      fourBytes(tables, 0x400, words[at + 2] as number) ^
      fourBytes(tables, 0, words[at + 3] as number);
  }
  return crc;
}

/** The effect of four bytes, whose last has table `base`. */
function fourBytes(tables: Int32Array, base: number, word: number): number {
  return (
    (tables[base + 0x300 + (word & 0xff)] as number) ^
    (tables[base + 0x200 + ((word >>> 8) & 0xff)] as number) ^
    (tables[base + 0x100 + ((word >>> 16) & 0xff)] as number) ^
    (tables[base + (word >>> 24)] as number)
  );
}

/** Four bytes, the lowest first. */
function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** Table n at n * 256: the effect of a byte that is followed by n more. */
function buildTables(): Int32Array {
  const tables = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256] ?? 0;
    tables[at] = (tables[before & 0xff] ?? 0) ^ (before >>> 8);
  }
  return tables;
}
