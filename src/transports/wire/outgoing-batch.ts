// Messages that travel as one entry, written down as they come: nothing of what the callers gave is kept or copied
// twice, and what they do to their bytes later changes nothing.
import type { EncodedMessage } from '../../core/message.js';
import { messageFieldsOf } from './message-fields.js';
import { ownCopy, sizeOf } from './pending-message.js';
import type { PendingMessage } from './pending-message.js';
import { PendingReceipts } from './pending-receipts.js';
import type { Settle } from './pending-receipts.js';
import { BatchWriter, decodeBatch } from './protocol/batch.js';

/** Of a batch that has no message yet. */
const NONE: EncodedMessage = { payload: null, properties: {} };

export class OutgoingBatch {
  readonly receipts: PendingReceipts;
  /** Sequence ids: they grow within a batch. */
  lowestId = -1;
  highestId = -1;
  readonly #writer: BatchWriter;
  #first: EncodedMessage = NONE;

  /** @param nowMs when it is begun. @param writer empty; it belongs to this batch until the batch was sent. */
  constructor(nowMs: number, writer = new BatchWriter()) {
    this.receipts = new PendingReceipts(nowMs);
    this.#writer = writer;
  }

  /** One message as an entry of its own. It is not copied: to be sent within the call that published it. */
  static alone(message: PendingMessage, nowMs: number): OutgoingBatch {
    const batch = new OutgoingBatch(nowMs);
    batch.#first = message.message;
    batch.#count(message);
    return batch;
  }

  /** How many messages. */
  get size(): number {
    return this.receipts.count;
  }

  /** The first message: its key stands for the batch, and alone it takes another form than in a batch. */
  get first(): EncodedMessage {
    return this.#first;
  }

  /** @throws what a message that cannot be written makes the writer throw; the batch is as before then. */
  add(message: PendingMessage): void {
    this.#writer.addMessage(message.message, message.sequenceId);
    if (this.size === 0) this.#first = ownCopy(message.message);
    this.#count(message);
  }

  /** The payload of the entry; a view that the next use of the writer changes. */
  payload(): Buffer {
    return this.#writer.view();
  }

  /** The writer for another batch, once this one was sent. */
  freeWriter(): BatchWriter {
    this.#writer.reset();
    return this.#writer;
  }

  /** The same messages as two batches. */
  halves(): readonly [OutgoingBatch, OutgoingBatch] {
    const { sinceMs } = this.receipts;
    const halves = [new OutgoingBatch(sinceMs), new OutgoingBatch(sinceMs)] as const;
    const settles = this.receipts.settles;
    const payload = this.payload();
    for (const { index, metadata, start, end } of decodeBatch(payload, this.size)) {
      const own = metadata.nullValue === true ? null : payload.subarray(start, end);
      const message = { payload: own, ...messageFieldsOf(metadata) };
      const { sequenceId = -1 } = metadata;
      const settle = settles[index] as Settle;
      const half = halves[index < this.size >>> 1 ? 0 : 1];
      half.add({ message, sequenceId, bytes: sizeOf(message), sinceMs, settle });
    }
    return halves;
  }

  #count(message: PendingMessage): void {
    if (this.size === 0) this.lowestId = message.sequenceId;
    this.highestId = message.sequenceId;
    this.receipts.add(message);
  }
}
