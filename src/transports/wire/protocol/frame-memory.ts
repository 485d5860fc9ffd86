// Memory of frames as large as a full batch, used again once the broker has stored what is in it. Fresh memory for each
// would cost more than all that is written into it: the system clears it page by page, and the collector counts it.

/** A batch of the default size, with what frames it. */
const PIECE_BYTES = 136 * 1024;
/** Smaller ones would waste the rest of their piece while they wait. */
const LEAST_BYTES = PIECE_BYTES / 2;
/** Kept for later, in the whole process: four megabytes. */
const MAX_SPARE = 32;

const spare: ArrayBufferLike[] = [];

/** @returns `bytes` bytes, whatever they hold. */
export function frameMemory(bytes: number): Buffer {
  if (bytes < LEAST_BYTES || bytes > PIECE_BYTES) return Buffer.allocUnsafe(bytes);
  return Buffer.from(spare.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES).buffer, 0, bytes);
}

/** Says that nobody reads `frame` any more, no socket either. For others than those of `frameMemory` it does nothing. */
export function freeFrameMemory({ buffer }: Buffer): void {
  if (buffer.byteLength === PIECE_BYTES && spare.length < MAX_SPARE) spare.push(buffer);
}
