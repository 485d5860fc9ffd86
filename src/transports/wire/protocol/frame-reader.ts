// Cuts a byte stream into frames, whatever way it was split. At most one frame is gathered at a time, in a buffer of
// exactly its size, so memory is bounded by the largest frame that is allowed and no byte is copied twice.
import { SIZE_BYTES } from './frames.js';
import { WireFormatError } from './wire-format-error.js';

export class FrameReader {
  readonly #onFrame: (frame: Buffer) => void;
  /** The largest total size taken; may be raised once the broker has told its limit. */
  maxFrameBytes: number;
  /** The total size of the next frame as far as it has come, then the frame that is being gathered. */
  readonly #size = Buffer.alloc(SIZE_BYTES);
  #sizeBytes = 0;
  #frame: Buffer | undefined;
  #frameBytes = 0;

  /** @param onFrame gets each frame without its total size, as a view of the chunk it came in where it lies in one. */
  constructor(maxFrameBytes: number, onFrame: (frame: Buffer) => void) {
    this.maxFrameBytes = maxFrameBytes;
    this.#onFrame = onFrame;
  }

  /** @throws WireFormatError when a frame claims to be larger than allowed: nothing behind it can be trusted. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#frame !== undefined) at = this.#gather(this.#frame, chunk, at);
      else if (this.#sizeBytes > 0 || chunk.length - at < SIZE_BYTES) at = this.#gatherSize(chunk, at);
      else at = this.#wholeFrame(chunk, at);
    }
  }

  /** The common case: the frame lies in this chunk. */
  #wholeFrame(chunk: Buffer, at: number): number {
    const size = this.#checked(chunk.readUInt32BE(at));
    const start = at + SIZE_BYTES;
    if (start + size > chunk.length) {
      this.#begin(size);
      return start;
    }
    this.#onFrame(chunk.subarray(start, start + size));
    return start + size;
  }

  #gatherSize(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.#size, this.#sizeBytes, at);
    this.#sizeBytes += copied;
    if (this.#sizeBytes === SIZE_BYTES) this.#begin(this.#checked(this.#size.readUInt32BE(0)));
    return at + copied;
  }

  #begin(size: number): void {
    this.#sizeBytes = 0;
    this.#frame = Buffer.allocUnsafe(size);
    this.#frameBytes = 0;
  }

  #gather(frame: Buffer, chunk: Buffer, at: number): number {
    const copied = chunk.copy(frame, this.#frameBytes, at);
    this.#frameBytes += copied;
    if (this.#frameBytes === frame.length) {
      this.#frame = undefined;
      this.#onFrame(frame);
    }
    return at + copied;
  }

  #checked(size: number): number {
    if (size >= SIZE_BYTES && size <= this.maxFrameBytes) return size;
    throw new WireFormatError(`a frame of ${size} bytes, allowed are ${SIZE_BYTES} to ${this.maxFrameBytes}`);
  }
}
