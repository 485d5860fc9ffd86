// Gathers messages of one producer into entries: which of them may travel together, and when they leave.
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { Clock, Timer } from '../../ports/clock.js';
import { OutgoingBatch } from './outgoing-batch.js';
import type { PendingMessage } from './pending-message.js';
import type { BatchWriter } from './protocol/batch.js';
import type { ResolvedBatching } from './publisher-options.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

/** Writers kept for the batches to come: batches by key may be as many as there are keys. */
const MAX_SPARE_WRITERS = 16;

export class Batcher {
  readonly #options: ResolvedBatching | undefined;
  readonly #clock: Clock;
  /** Takes the batch within the call. */
  readonly #send: (batch: OutgoingBatch) => void;
  /** Open batches by key, in the order in which they were begun; one, under '', unless they are made by key. */
  #batches = new Map<string, OutgoingBatch>();
  readonly #spareWriters: BatchWriter[] = [];
  #messages = 0;
  #bytes = 0;
  /** What all that is gathered is a part of: a whole entry is, or none of it. */
  #transaction: OpenTransaction | undefined;
  /** When the first of them was gathered. */
  #sinceMs = 0;
  #scheduled = false;
  #timer: Timer | undefined;
  /** One for all times: a function made for each message would be made before it is known whether it is needed. */
  readonly #due = (): void => this.#timeIsUp();
  /** The highest sequence id that was ever gathered. */
  #highest = -1;
  /** Counts what was sent: messages without a key change the partition with it. */
  sent = 0;

  constructor(options: ResolvedBatching | undefined, clock: Clock, send: (batch: OutgoingBatch) => void) {
    this.#options = options;
    this.#clock = clock;
    this.#send = send;
  }

  /** @param sequenceId the highest that the broker already has of this producer. */
  startAfter(sequenceId: number): void {
    this.#highest = Math.max(this.#highest, sequenceId);
  }

  /** @returns the receipt. @throws what a message that cannot be written makes the writer throw; it is not gathered then. */
  add(message: PendingMessage): Promise<MessageId> {
    const options = this.#options;
    if (options === undefined || !this.#mayJoin(message, options)) return this.#sendAlone(message);
    if (this.#bytes + message.bytes > options.maxBytes || message.transaction !== this.#transaction) this.flush();
    this.#transaction = message.transaction;
    const key = options.byKey ? batchKeyOf(message.message) : '';
    const batch = this.#batches.get(key) ?? this.#begin();
    const receipt = batch.add(message);
    if (batch.size === 1) this.#batches.set(key, batch);
    this.#highest = message.sequenceId;
    this.#messages += 1;
    this.#bytes += message.bytes;
    if (this.#messages >= options.maxMessages || this.#bytes >= options.maxBytes) this.flush();
    else if (!this.#scheduled) this.#schedule(options.maxDelayMs);
    return receipt;
  }

  #begin(): OutgoingBatch {
    const nowMs = this.#clock.elapsedMs();
    if (this.#messages === 0) this.#sinceMs = nowMs;
    return new OutgoingBatch(nowMs, this.#spareWriters.pop());
  }

  /** Sends what is gathered. */
  flush(): void {
    if (this.#messages === 0) return;
    const batches = this.takeAll();
    this.sent += 1;
    for (const batch of batches) {
      this.#send(batch);
      if (this.#spareWriters.length < MAX_SPARE_WRITERS) this.#spareWriters.push(batch.freeWriter());
    }
  }

  /** What is gathered, as the batches that would be sent, in their order. */
  takeAll(): OutgoingBatch[] {
    const batches = [...this.#batches.values()];
    this.#batches.clear();
    this.#messages = 0;
    this.#bytes = 0;
    // A broker that deduplicates drops what is not above the highest id it has: batches whose ids lie between each
    // other's must go by their highest, which is their last (G-02).
    return batches.length < 2 ? batches : batches.sort((a, b) => a.highestId - b.highestId);
  }

  close(): void {
    this.#timer?.cancel();
  }

  /**
   * A delay counts for a whole entry. An id at or below one that was sent may be a repetition; in a batch with fresh ids
   * a broker that deduplicates would drop those with it (G-01).
   */
  #mayJoin({ message, sequenceId, bytes }: PendingMessage, { maxBytes }: ResolvedBatching): boolean {
    return message.deliverAtMs === undefined && sequenceId > this.#highest && bytes <= maxBytes;
  }

  #sendAlone(message: PendingMessage): Promise<MessageId> {
    this.flush();
    this.#highest = Math.max(this.#highest, message.sequenceId);
    this.sent += 1;
    const batch = new OutgoingBatch(this.#clock.elapsedMs());
    const receipt = batch.addAlone(message);
    this.#send(batch);
    return receipt;
  }

  #schedule(delayMs: number): void {
    this.#scheduled = true;
    if (delayMs === 0) this.#clock.nextTurn(this.#due);
    else this.#timer = this.#clock.setTimer(delayMs, this.#due);
  }

  /** What it was set for may have left when there was enough of it: what came afterwards has its own delay. */
  #timeIsUp(): void {
    this.#scheduled = false;
    if (this.#messages === 0) return;
    const leftMs = this.#sinceMs + (this.#options?.maxDelayMs ?? 0) - this.#clock.elapsedMs();
    if (leftMs > 0) this.#schedule(leftMs);
    else this.flush();
  }
}

/** Text and bytes never meet, nor do keys and ordering keys: the first letter tells them apart. */
function batchKeyOf({ key, orderingKey }: EncodedMessage): string {
  if (orderingKey !== undefined) return `o${textOf(orderingKey)}`;
  if (key === undefined) return '';
  return typeof key === 'string' ? `s${key}` : `b${textOf(key)}`;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
