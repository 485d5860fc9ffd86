// Reads protobuf primitives out of a part of a buffer. Every length is checked before it is used, so that hostile bytes
// end in a WireFormatError and never in a large allocation.
import { WireFormatError } from './wire-format-error.js';

/** Protobuf wire types: how many bytes a value has. 3 and 4 (groups) are not used by Pulsar. */
export type WireType = 0 | 1 | 2 | 5;

const TWO_32 = 2 ** 32;

export class ProtoReader {
  readonly bytes: Buffer;
  position: number;
  readonly end: number;
  /** The halves of the varint read last, when it had more than four bytes. */
  #low = 0;
  #high = 0;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.position = start;
    this.end = end;
  }

  get atEnd(): boolean {
    return this.position >= this.end;
  }

  /** Field number and wire type in one: `number << 3 | type`. */
  key(): number {
    const key = this.uint32();
    if (key >>> 3 === 0) throw new WireFormatError('field number 0');
    return key;
  }

  uint32(): number {
    const short = this.#shortVarint();
    if (short >= 0) return short;
    return this.#low >>> 0;
  }

  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    const short = this.#shortVarint();
    return short >= 0 ? short !== 0 : this.#low !== 0 || this.#high !== 0;
  }

  /** A 64-bit number as signed: 2^64-1 is -1, as Pulsar means it. @throws above 2^53-1. */
  long(): number {
    const short = this.#shortVarint();
    if (short >= 0) return short;
    const value = this.#signed();
    if (Number.isSafeInteger(value)) return value;
    throw new WireFormatError('a number above 2^53-1');
  }

  /** The nearest number, for what is only shown (times, sequence ids of others) or checked by who gets it (positions). */
  nearestLong(): number {
    const short = this.#shortVarint();
    return short >= 0 ? short : this.#signed();
  }

  bigint(): bigint {
    const short = this.#shortVarint();
    if (short >= 0) return BigInt(short);
    return (BigInt(this.#high | 0) << 32n) | BigInt(this.#low >>> 0);
  }

  double(): number {
    const at = this.#skip(8);
    return this.bytes.readDoubleLE(at);
  }

  string(): string {
    const end = this.lengthEnd();
    const text = this.bytes.toString('utf8', this.position, end);
    this.position = end;
    return text;
  }

  /** A view, not a copy: it lives as long as the buffer it came from. */
  view(): Buffer {
    const end = this.lengthEnd();
    const view = this.bytes.subarray(this.position, end);
    this.position = end;
    return view;
  }

  /** Reads a length and returns where it ends. */
  lengthEnd(): number {
    const length = this.uint32();
    if (length > this.end - this.position) {
      throw new WireFormatError(`a length of ${length} with ${this.end - this.position} bytes left`);
    }
    return this.position + length;
  }

  /** Passes over a field that is not known. */
  skipField(wireType: number): void {
    switch (wireType) {
      case 0:
        this.#shortVarint();
        return;
      case 1:
        this.#skip(8);
        return;
      case 2:
        this.position = this.lengthEnd();
        return;
      case 5:
        this.#skip(4);
        return;
      default:
        throw new WireFormatError(`wire type ${wireType}`);
    }
  }

  #skip(count: number): number {
    const at = this.position;
    if (count > this.end - at) throw new WireFormatError('it ends inside a value');
    this.position = at + count;
    return at;
  }

  /** A varint of at most four bytes; -1 when it is longer, and then its halves are in `#low` and `#high`. */
  #shortVarint(): number {
    const { bytes, end } = this;
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      if (this.position >= end) throw new WireFormatError('it ends inside a number');
      const byte = bytes[this.position++] ?? 0;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    this.#low = value;
    this.#high = 0;
    this.#longVarint();
    return -1;
  }

  #longVarint(): void {
    for (let shift = 28; shift < 70; shift += 7) {
      if (this.position >= this.end) throw new WireFormatError('it ends inside a number');
      const byte = this.bytes[this.position++] ?? 0;
      const bits = byte & 0x7f;
      if (shift === 28) {
        this.#low |= bits << 28;
        this.#high = bits >>> 4;
      } else {
        this.#high |= bits << (shift - 32);
      }
      if (byte < 0x80) return;
    }
    throw new WireFormatError('a number of more than 10 bytes');
  }

  #signed(): number {
    return (this.#high | 0) * TWO_32 + (this.#low >>> 0);
  }
}
