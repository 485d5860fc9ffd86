// Batches: several messages in one entry, each with a small metadata of its own before its payload.
import type { EncodedMessage } from '../../../core/message.js';
import { SINGLE_MESSAGE_METADATA } from './message-metadata.js';
import type { SingleMessageMetadata } from './message-metadata.js';
import { ProtoWriter } from './proto-writer.js';
import { readSingleMessage, writeSingleMessage } from './single-message.js';
import { WireFormatError } from './wire-format-error.js';

const SIZE_BYTES = 4;
const NO_BYTES = Buffer.alloc(0);

/** Gathers the messages of one entry. */
export class BatchWriter {
  readonly #writer = new ProtoWriter();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Bytes so far. */
  get length(): number {
    return this.#writer.length;
  }

  add(metadata: SingleMessageMetadata, payload: Uint8Array): void {
    const writer = this.#writer;
    const start = writer.length;
    writer.uint32BE(0);
    SINGLE_MESSAGE_METADATA.writeFields(writer, metadata);
    writer.uint32BEAt(start, writer.length - start - SIZE_BYTES);
    writer.raw(payload);
    this.#count += 1;
  }

  /** One message as its publisher gave it. */
  addMessage(message: EncodedMessage, sequenceId: number): void {
    const writer = this.#writer;
    const start = writer.length;
    const payload = message.payload ?? NO_BYTES;
    try {
      writer.uint32BE(0);
      writeSingleMessage(writer, message, payload.length, sequenceId);
      writer.uint32BEAt(start, writer.length - start - SIZE_BYTES);
      writer.raw(payload);
    } catch (error) {
      writer.cutTo(start);
      throw error;
    }
    this.#count += 1;
  }

  /** The uncompressed payload of the entry; a view until the next `add` or `reset`. */
  view(): Buffer {
    return this.#writer.view();
  }

  reset(): void {
    this.#writer.reset();
    this.#count = 0;
  }
}

export interface BatchedMessage {
  /** The place in the batch, by which it is acknowledged. */
  readonly index: number;
  readonly metadata: SingleMessageMetadata;
  /** Where its payload lies in the batch. */
  readonly start: number;
  readonly end: number;
}

/**
 * The messages of a batch in order.
 * @param count `num_messages_in_batch`. @param indexes which places the payload holds where the broker compacted it.
 * @throws WireFormatError when the payload does not hold exactly these messages.
 */
export function decodeBatch(payload: Buffer, count: number, indexes?: readonly number[]): BatchedMessage[] {
  // A message takes five bytes or more: a count that cannot be true must not make a large list.
  const expected = indexes?.length ?? count;
  if (expected < 0 || expected * SIZE_BYTES > payload.length) {
    throw new WireFormatError(`a batch of ${expected} messages in ${payload.length} bytes`);
  }
  const messages: BatchedMessage[] = [];
  let at = 0;
  for (let i = 0; i < expected; i++) {
    if (at + SIZE_BYTES > payload.length) throw new WireFormatError(`a batch that ends before message ${i}`);
    const payloadAt = at + SIZE_BYTES + payload.readUInt32BE(at);
    if (payloadAt > payload.length) throw new WireFormatError(`message ${i} of a batch: its metadata is cut off`);
    const metadata = readSingleMessage(payload, at + SIZE_BYTES, payloadAt);
    const end = payloadAt + metadata.payloadSize;
    if (metadata.payloadSize < 0 || end > payload.length) {
      throw new WireFormatError(`message ${i} of a batch: a payload of ${metadata.payloadSize} bytes`);
    }
    messages.push({ index: indexes === undefined ? i : (indexes[i] ?? i), metadata, start: payloadAt, end });
    at = end;
  }
  if (at !== payload.length) throw new WireFormatError(`a batch with ${payload.length - at} bytes too many`);
  return messages;
}
