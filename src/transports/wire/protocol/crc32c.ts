// CRC-32C (Castagnoli), which protects metadata and payload of every message. Eight bytes per step over eight tables:
// small messages are checked faster here than across a call into WebAssembly.

/** The Castagnoli polynomial with its bits in reverse. */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 8;
const TABLES = buildTables();

/** The checksum of `bytes[start, end)`, 0 to 2^32-1. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  const tables = TABLES;
  let crc = -1;
  let at = start;
  for (; at + SLICES <= end; at += SLICES) {
    crc ^= word(bytes, at);
    const next = word(bytes, at + 4);
    crc =
      (tables[0x700 | (crc & 0xff)] as number) ^
      (tables[0x600 | ((crc >>> 8) & 0xff)] as number) ^
      (tables[0x500 | ((crc >>> 16) & 0xff)] as number) ^
      (tables[0x400 | (crc >>> 24)] as number) ^
      (tables[0x300 | (next & 0xff)] as number) ^
      (tables[0x200 | ((next >>> 8) & 0xff)] as number) ^
      (tables[0x100 | ((next >>> 16) & 0xff)] as number) ^
      (tables[next >>> 24] as number);
  }
  for (; at < end; at++) crc = (tables[(crc ^ (bytes[at] as number)) & 0xff] as number) ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Four bytes, the lowest first. */
function word(bytes: Uint8Array, at: number): number {
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
