// One message from `publish` to its receipt, and the room that such messages take: per publisher in messages, per client
// in bytes. What finds no room waits in order; the promise that its publisher awaits is the back-pressure.
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { Fifo } from './fifo.js';

export interface PendingMessage {
  readonly message: EncodedMessage;
  readonly sequenceId: number;
  /** What it counts in limits. */
  readonly bytes: number;
  /** When it was published; the send timeout runs from here. */
  readonly sinceMs: number;
  readonly stored: (id: MessageId) => void;
  readonly failed: (error: Error) => void;
}

/** The key and sizes of an entry's metadata, about. */
const OVERHEAD_BYTES = 32;

/** About what a message takes in an entry: exact but for text beyond ASCII. */
export function sizeOf({ payload, key, orderingKey, properties }: EncodedMessage): number {
  let bytes = OVERHEAD_BYTES + (payload === null ? 0 : payload.length);
  if (key !== undefined) bytes += key.length;
  if (orderingKey !== undefined) bytes += orderingKey.length;
  for (const name in properties) bytes += name.length + (properties[name] ?? '').length;
  return bytes;
}

/** The bytes of one client that wait for receipts. */
export class PendingBytes {
  readonly max: number;
  used = 0;
  /** Whoever has messages waiting for room. */
  readonly waiting = new Set<PendingRoom>();

  constructor(max: number) {
    this.max = max;
  }
}

export class PendingRoom {
  readonly #maxMessages: number;
  readonly #bytes: PendingBytes;
  /** Sends a message that has found room. */
  readonly #admit: (message: PendingMessage) => void;
  readonly #queue = new Fifo<PendingMessage>();
  #messages = 0;
  /** A message that fails at once leaves while others are let in: the loop that lets them in goes on, not a new one. */
  #admitting = false;

  constructor(maxMessages: number, bytes: PendingBytes, admit: (message: PendingMessage) => void) {
    this.#maxMessages = maxMessages;
    this.#bytes = bytes;
    this.#admit = admit;
  }

  /** Sends it now, or once those before it were sent and there is room. */
  enter(message: PendingMessage): void {
    if (this.#queue.size === 0 && this.#fits(message)) return this.#take(message);
    this.#queue.push(message);
    this.#bytes.waiting.add(this);
  }

  /** Called once for each message that was admitted: it has its receipt, or failed. */
  leave(messages: readonly PendingMessage[]): void {
    this.#messages -= messages.length;
    for (const { bytes } of messages) this.#bytes.used -= bytes;
    for (const room of this.#bytes.waiting) room.#admitWaiting();
  }

  /** Fails what waits; what was admitted is not touched. */
  close(error: Error): void {
    this.#bytes.waiting.delete(this);
    for (const { failed } of this.#queue.takeAll()) failed(error);
  }

  #admitWaiting(): void {
    if (this.#admitting) return;
    this.#admitting = true;
    for (let next = this.#queue.peek(); next !== undefined && this.#fits(next); next = this.#queue.peek()) {
      this.#queue.shift();
      this.#take(next);
    }
    this.#admitting = false;
    if (this.#queue.size === 0) this.#bytes.waiting.delete(this);
  }

  #take(message: PendingMessage): void {
    this.#messages += 1;
    this.#bytes.used += message.bytes;
    this.#admit(message);
  }

  /** One that is larger than all the room goes when it is alone. */
  #fits({ bytes }: PendingMessage): boolean {
    const { used, max } = this.#bytes;
    return this.#messages < this.#maxMessages && (used === 0 || used + bytes <= max);
  }
}
