// The codecs of payloads. zlib is Node's own; the others are small packages without native code, loaded when the first
// message needs them. Every decompression is told the size to expect, so that a small payload cannot blow up.
import { constants, deflateSync, inflateSync } from 'node:zlib';
import * as zlib from 'node:zlib';
import { COMPRESSION_NUMBERS } from './message-metadata.js';
import type { Compression } from './message-metadata.js';
import { WireFormatError } from './wire-format-error.js';

export interface CompressionCodec {
  compress(payload: Uint8Array): Uint8Array;
  /** @param size of the result, as the producer wrote it. Anything may be thrown for bytes that are not valid. */
  decompress(payload: Uint8Array, size: number): Uint8Array;
}

const ZSTD_MAGIC = 0xfd2fb528;

/** Loaded codecs by number, and the loading of those that are under way. */
const loaded = new Map<number, CompressionCodec>();
const loading = new Map<number, Promise<CompressionCodec>>();

const LOADERS: Readonly<Record<Exclude<Compression, 'none'>, () => Promise<CompressionCodec>>> = {
  zlib: async () => ({
    compress: (payload) => deflateSync(payload),
    // Java's client flushes its stream and never ends it; what is truly cut off has not the size that was written.
    decompress: (payload, size) =>
      inflateSync(payload, { maxOutputLength: Math.max(1, size), finishFlush: constants.Z_SYNC_FLUSH }),
  }),
  lz4: loadLz4,
  zstd: loadZstd,
  snappy: loadSnappy,
};

/** The codec when it is loaded. @param number of `MessageMetadata.compression`, not 0. */
export function loadedCodec(number: number): CompressionCodec | undefined {
  return loaded.get(number);
}

/** @throws WireFormatError for a number that no codec has. Also fails when the package is not installed. */
export async function loadCodec(number: number): Promise<CompressionCodec> {
  const name = compressionName(number);
  if (name === undefined || name === 'none') throw new WireFormatError(`compression ${number} is not known`);
  const codec = loading.get(number) ?? LOADERS[name]();
  loading.set(number, codec);
  try {
    loaded.set(number, await codec);
  } catch (error) {
    loading.delete(number);
    throw error;
  }
  return codec;
}

export function compressionName(number: number): Compression | undefined {
  return (Object.keys(COMPRESSION_NUMBERS) as Compression[]).find((name) => COMPRESSION_NUMBERS[name] === number);
}

/** @throws WireFormatError when the bytes are not valid or have another size than `size`. */
export function decompress(codec: CompressionCodec, payload: Uint8Array, size: number): Buffer {
  let result: Uint8Array;
  try {
    result = codec.decompress(payload, size);
  } catch (error) {
    throw new WireFormatError(`a payload that cannot be decompressed: ${String(error)}`);
  }
  if (result.length !== size) {
    throw new WireFormatError(`a payload of ${result.length} bytes after decompression, the producer wrote ${size}`);
  }
  return Buffer.from(result.buffer, result.byteOffset, result.length);
}

/** Pulsar stores raw blocks; the package puts the size before the block, least byte first. */
async function loadLz4(): Promise<CompressionCodec> {
  const lz4 = await import('lz4-wasm-nodejs');
  return {
    compress: (payload) => lz4.compress(payload).subarray(4),
    decompress: (payload, size) => {
      const withSize = Buffer.allocUnsafe(payload.length + 4);
      withSize.writeUInt32LE(size);
      withSize.set(payload, 4);
      return lz4.decompress(withSize);
    },
  };
}

/** Node's own from 22.15 on, WebAssembly before. */
async function loadZstd(): Promise<CompressionCodec> {
  const { zstdCompressSync, zstdDecompressSync } = zlib as unknown as NodeZstd;
  if (zstdCompressSync !== undefined && zstdDecompressSync !== undefined) {
    return {
      compress: (payload) => zstdCompressSync(payload),
      decompress: (payload, size) => zstdDecompressSync(payload, { maxOutputLength: Math.max(1, size) }),
    };
  }
  const zstd = await import('@bokuweb/zstd-wasm');
  await zstd.init();
  return {
    compress: (payload) => zstd.compress(payload),
    decompress: (payload, size) => {
      // The package makes room for whatever the frame claims, and memory of WebAssembly never shrinks again.
      const claimed = zstdContentSize(payload);
      if (claimed !== undefined && claimed > BigInt(size))
        throw new WireFormatError(`a frame that claims ${claimed} bytes`);
      return zstd.decompress(payload, { defaultHeapSize: Math.max(1, size) });
    },
  };
}

/** What the header of a zstd frame says of its size (RFC 8878, 3.1.1.1); undefined where it says nothing. */
export function zstdContentSize(frame: Uint8Array): bigint | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  if (frame.length < 5 || view.getUint32(0, true) !== ZSTD_MAGIC) return undefined;
  const descriptor = view.getUint8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryIdBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const at = 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >>> 6] ?? 0;
  if (sizeBytes === 0 || at + sizeBytes > frame.length) return undefined;
  if (sizeBytes === 1) return BigInt(view.getUint8(at));
  // Two bytes hold 256 less than the size.
  if (sizeBytes === 2) return BigInt(view.getUint16(at, true)) + 256n;
  return sizeBytes === 4 ? BigInt(view.getUint32(at, true)) : view.getBigUint64(at, true);
}

interface NodeZstd {
  readonly zstdCompressSync?: (payload: Uint8Array) => Buffer;
  readonly zstdDecompressSync?: (payload: Uint8Array, options: { readonly maxOutputLength: number }) => Buffer;
}

async function loadSnappy(): Promise<CompressionCodec> {
  const { default: snappy } = await import('snappyjs');
  return {
    compress: (payload) => snappy.compress(payload),
    decompress: (payload, size) => {
      if (!isSnappyWalkable(payload)) throw new WireFormatError('a snappy literal that is longer than what is left');
      return snappy.uncompress(payload, size);
    },
  };
}

/**
 * Whether each literal of a snappy block ends inside it. The package reads a length of four bytes as a signed number:
 * a negative one sends it back over bytes already read, without end.
 */
export function isSnappyWalkable(block: Uint8Array): boolean {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  let at = 0;
  while (at < block.length && view.getUint8(at) > 127) at++; // The size of the result, seven bits in each byte.
  at++;
  while (at < block.length) {
    const tag = view.getUint8(at++);
    const kind = tag & 3;
    if (kind !== 0) {
      at += [0, 1, 2, 4][kind] ?? 0;
      continue;
    }
    const lengthBytes = Math.max(0, (tag >>> 2) - 59);
    if (at + lengthBytes > block.length) return false;
    let length = lengthBytes === 0 ? tag >>> 2 : 0;
    for (let i = 0; i < lengthBytes; i++) length += view.getUint8(at + i) * 2 ** (8 * i);
    at += lengthBytes + length + 1;
    if (at > block.length) return false;
  }
  return true;
}
