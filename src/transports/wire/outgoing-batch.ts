// Messages that travel as one entry, written down as they come: nothing of what the callers gave is kept or copied
// twice, and what they do to their bytes later changes nothing.
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { messageFieldsOf } from './message-fields.js';
import { ownCopy, sizeOf } from './pending-message.js';
import type { PendingMessage } from './pending-message.js';
import { PendingReceipts } from './pending-receipts.js';
import { BatchWriter, decodeBatch } from './protocol/batch.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

/** Of a batch that has no message yet. */
const NONE: EncodedMessage = { payload: null, properties: {} };

export class OutgoingBatch {
  readonly receipts: PendingReceipts;
  /** Sequence ids: they grow within a batch. */
  lowestId = -1;
  highestId = -1;
  /** What its messages are parts of, all of them. */
  transaction: OpenTransaction | undefined;
  readonly #writer: BatchWriter;
  #first: EncodedMessage = NONE;

  /** @param nowMs when it is begun. @param writer empty; it belongs to this batch until the batch was sent. */
  constructor(nowMs: number, writer = new BatchWriter()) {
    this.receipts = new PendingReceipts(nowMs);
    this.#writer = writer;
  }

  /** How many messages. */
  get size(): number {
    return this.receipts.count;
  }

  /** The first message: its key stands for the batch, and alone it takes another form than in a batch. */
  get first(): EncodedMessage {
    return this.#first;
  }

  /**
   * @returns the receipt. @throws what a message that cannot be written makes the writer throw; the batch is as before
   *   then.
   */
  add(message: PendingMessage): Promise<MessageId> {
    this.#writer.addMessage(message.message, message.sequenceId);
    if (this.size === 0) this.#first = ownCopy(message.message);
    return this.#count(message);
  }

  /** The only message of its entry. It is not copied: to be sent within the call that published it. */
  addAlone(message: PendingMessage): Promise<MessageId> {
    this.#first = message.message;
    return this.#count(message);
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

  /** The same messages as two batches, whose receipts they have from now on. */
  halves(): readonly [OutgoingBatch, OutgoingBatch] {
    const { sinceMs } = this.receipts;
    const halves = [new OutgoingBatch(sinceMs), new OutgoingBatch(sinceMs)] as const;
    const receipts: Promise<MessageId>[] = [];
    const payload = this.payload();
    for (const { index, metadata, start, end } of decodeBatch(payload, this.size)) {
      const own = metadata.nullValue === true ? null : payload.subarray(start, end);
      const message = { payload: own, ...messageFieldsOf(metadata) };
      const { sequenceId = -1 } = metadata;
      const half = halves[index < this.size >>> 1 ? 0 : 1];
      receipts.push(half.add({ message, sequenceId, bytes: sizeOf(message), sinceMs, transaction: this.transaction }));
    }
    this.receipts.movedTo(receipts);
    return halves;
  }

  #count({ sequenceId, bytes, sinceMs, transaction }: PendingMessage): Promise<MessageId> {
    if (this.size === 0) {
      this.lowestId = sequenceId;
      this.transaction = transaction;
    }
    this.highestId = sequenceId;
    return this.receipts.add(bytes, sinceMs);
  }
}
