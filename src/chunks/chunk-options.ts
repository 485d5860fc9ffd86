// How a publisher is asked to cut what is larger than an entry may be: the same words on every transport that can.
import type { OptionChecker } from '../core/options.js';

export interface ChunkingOptions {
  readonly chunking?: boolean | undefined;
  readonly maxChunkBytes?: number | undefined;
}

/** Smaller ones would be more metadata than payload. */
const MIN_CHUNK_BYTES = 1_024;

/** @param topic short or full name. */
export function checkChunking(topic: string, options: ChunkingOptions, check: OptionChecker): void {
  const { chunking, maxChunkBytes } = options;
  check.boolean('chunking', chunking);
  check.positiveInteger('maxChunkBytes', maxChunkBytes);
  if (maxChunkBytes !== undefined && maxChunkBytes < MIN_CHUNK_BYTES) {
    check.problem(`"maxChunkBytes" must be at least ${MIN_CHUNK_BYTES}, got ${maxChunkBytes}`);
  }
  if (maxChunkBytes !== undefined && chunking !== true) check.problem('"maxChunkBytes" needs "chunking: true"');
  if (chunking === true && topic.startsWith('non-persistent:')) {
    check.problem('"chunking" needs a persistent topic: elsewhere chunks get lost one by one');
  }
}

/** `Infinity` for as much as fits; undefined without chunking. */
export function resolvedChunkBytes({ chunking, maxChunkBytes = Infinity }: ChunkingOptions): number | undefined {
  return chunking === true ? maxChunkBytes : undefined;
}
