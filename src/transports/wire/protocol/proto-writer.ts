// Writes protobuf primitives, and the big-endian lengths of frames, into a buffer that grows. One writer is reused for
// many frames: `reset`, write, `copy`.

const TWO_32 = 2 ** 32;
const INITIAL_BYTES = 1024;
/** Below 128, so that its length takes one byte. */
const SHORT_TEXT = 40;
/** The longest varint. */
const VARINT_BYTES = 10;

export class ProtoWriter {
  #bytes: Buffer = Buffer.allocUnsafe(INITIAL_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  reset(): void {
    this.#length = 0;
  }

  /** Forgets what was written from `length` on. */
  cutTo(length: number): void {
    this.#length = length;
  }

  /** What was written, in a buffer of its own. */
  copy(): Buffer {
    const copy = Buffer.allocUnsafe(this.#length);
    this.#bytes.copy(copy, 0, 0, this.#length);
    return copy;
  }

  /** What was written, as a view that the next write may change. */
  view(start = 0): Buffer {
    return this.#bytes.subarray(start, this.#length);
  }

  uint32BE(value: number): void {
    this.#reserve(4);
    this.#length = this.#bytes.writeUInt32BE(value, this.#length);
  }

  /** Fills in a length that became known later. */
  uint32BEAt(position: number, value: number): void {
    this.#bytes.writeUInt32BE(value, position);
  }

  uint16BE(value: number): void {
    this.#reserve(2);
    this.#length = this.#bytes.writeUInt16BE(value, this.#length);
  }

  /** A varint of 0 to 2^53-1; -1 and other negative numbers as 64-bit two's complement; Infinity as 2^63-1. */
  long(value: number): void {
    if (value >= 0 && value < 0x80) {
      this.#reserve(1);
      this.#bytes[this.#length++] = value;
      return;
    }
    if (value >= 0 && value < TWO_32) this.#varint(value >>> 0, 0);
    else if (value === Infinity) this.#varint(0xffffffff, 0x7fffffff);
    else this.#varint(value >>> 0, Math.floor(value / TWO_32) >>> 0);
  }

  bigint(value: bigint): void {
    this.#varint(Number(value & 0xffffffffn), Number((value >> 32n) & 0xffffffffn));
  }

  double(value: number): void {
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.long(value.length);
    this.raw(value);
  }

  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  string(value: string): void {
    if (value.length <= SHORT_TEXT && this.#shortAscii(value)) return;
    const start = this.beginLength();
    this.#reserve(value.length * 3);
    this.#length += this.#bytes.write(value, this.#length, 'utf8');
    this.endLength(start);
  }

  /** Names and keys are short: a loop is faster than a call out of JavaScript. False, and nothing written, if not ASCII. */
  #shortAscii(value: string): boolean {
    this.#reserve(value.length + 1);
    const bytes = this.#bytes;
    const start = this.#length + 1;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) return false;
      bytes[start + i] = unit;
    }
    bytes[start - 1] = value.length;
    this.#length = start + value.length;
    return true;
  }

  /** Leaves one byte for the length of what follows. */
  beginLength(): number {
    this.#reserve(1);
    this.#length += 1;
    return this.#length;
  }

  /** Fills in the length of what was written since `beginLength` returned `start`; long parts are moved to make room. */
  endLength(start: number): void {
    const length = this.#length - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    const more = varintLength(length) - 1;
    this.#reserve(more);
    this.#bytes.copyWithin(start + more, start, this.#length);
    this.#length = start - 1;
    this.long(length);
    this.#length += length;
  }

  #varint(low: number, high: number): void {
    this.#reserve(VARINT_BYTES);
    const bytes = this.#bytes;
    let at = this.#length;
    while (high !== 0) {
      bytes[at++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    while (low > 0x7f) {
      bytes[at++] = (low & 0x7f) | 0x80;
      low >>>= 7;
    }
    bytes[at++] = low;
    this.#length = at;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}
