// One message from `publish` to its receipt, and the room that such messages take: per publisher in messages, per client
// in bytes. What finds no room waits in order; the promise that its publisher awaits is the back-pressure.
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { MessageProperties } from '../../core/properties.js';
import { NO_PROPERTIES, copyProperties } from '../../core/properties.js';
import type { Clock } from '../../ports/clock.js';
import { Fifo } from './fifo.js';
import type { PendingReceipts } from './pending-receipts.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

export interface PendingMessage {
  /** What its publisher gave; a copy of it once it waits for room. */
  readonly message: EncodedMessage;
  readonly sequenceId: number;
  /** What it counts in limits. */
  readonly bytes: number;
  /** When it was published; undefined for now. */
  readonly sinceMs: number | undefined;
  /** What it is a part of. */
  readonly transaction?: OpenTransaction | undefined;
}

/** One that waits for room, and what settles the promise that its publisher has. */
interface WaitingMessage {
  readonly message: PendingMessage;
  readonly settle: (receipt: Promise<MessageId>) => void;
}

/** What waits is written later: what the caller does to its bytes meanwhile must change nothing. */
export function ownCopy(message: EncodedMessage): EncodedMessage {
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message;
  return {
    payload: payload === null ? null : Buffer.from(payload),
    key: key instanceof Uint8Array ? Buffer.from(key) : key,
    orderingKey: orderingKey && Buffer.from(orderingKey),
    properties: copyOfSome(properties),
    eventTimeMs,
    deliverAtMs,
  };
}

/** Most messages have none: an object without a prototype costs more than all the rest. */
function copyOfSome(properties: MessageProperties): MessageProperties {
  return Object.keys(properties).length === 0 ? NO_PROPERTIES : copyProperties(properties);
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

/** Sends a message that has found room, and gives its receipt. */
type Admit = (message: PendingMessage) => Promise<MessageId>;

export class PendingRoom {
  readonly #maxMessages: number;
  readonly #bytes: PendingBytes;
  readonly #clock: Clock;
  readonly #admit: Admit;
  readonly #queue = new Fifo<WaitingMessage>();
  #messages = 0;
  /** A message that fails at once leaves while others are let in: the loop that lets them in goes on, not a new one. */
  #admitting = false;

  constructor(maxMessages: number, bytes: PendingBytes, clock: Clock, admit: Admit) {
    this.#clock = clock;
    this.#maxMessages = maxMessages;
    this.#bytes = bytes;
    this.#admit = admit;
  }

  /** Sends it now, or once those before it were sent and there is room. */
  enter(message: PendingMessage): Promise<MessageId> {
    if (this.#queue.size === 0 && this.#fits(message)) return this.#take(message);
    const own = { ...message, message: ownCopy(message.message), sinceMs: this.#clock.elapsedMs() };
    this.#bytes.waiting.add(this);
    return new Promise((settle) => this.#queue.push({ message: own, settle }));
  }

  /** Called once for each message that was admitted: it has its receipt, or failed. */
  leave({ count, bytes }: Pick<PendingReceipts, 'count' | 'bytes'>): void {
    this.#messages -= count;
    this.#bytes.used -= bytes;
    for (const room of this.#bytes.waiting) room.#admitWaiting();
  }

  /** Fails what waits; what was admitted is not touched. */
  close(error: Error): void {
    this.#bytes.waiting.delete(this);
    for (const { settle } of this.#queue.takeAll()) settle(Promise.reject(error));
  }

  #admitWaiting(): void {
    if (this.#admitting) return;
    this.#admitting = true;
    for (let next = this.#queue.peek(); next !== undefined && this.#fits(next.message); next = this.#queue.peek()) {
      this.#queue.shift();
      next.settle(this.#take(next.message));
    }
    this.#admitting = false;
    if (this.#queue.size === 0) this.#bytes.waiting.delete(this);
  }

  #take(message: PendingMessage): Promise<MessageId> {
    this.#messages += 1;
    this.#bytes.used += message.bytes;
    return this.#admit(message);
  }

  /** One that is larger than all the room goes when it is alone. */
  #fits({ bytes }: PendingMessage): boolean {
    const { used, max } = this.#bytes;
    return this.#messages < this.#maxMessages && (used === 0 || used + bytes <= max);
  }
}
