// What the messages follow from that are written in a transaction: known where the runtime began it for a handler. Kept by
// the transaction itself, so that `outbox.add(tx, ...)` reads the same inside and outside of handlers.
import type { OutgoingMessage } from '../../core/message.js';
import type { Provenance } from '../message-encoder.js';

export interface TransactionOrigin {
  /**
   * For one message more, which is checked first: its id, the same on every repeat, and what it follows from.
   * @throws PulseworkError PUBLISH_REFUSED where the handler may not send there.
   */
  provenanceOf(message: OutgoingMessage): Provenance;
}

const origins = new WeakMap<object, TransactionOrigin>();

/** Until `leaveOrigin`: connections are used again. */
export function enterOrigin(tx: object, origin: TransactionOrigin): void {
  origins.set(tx, origin);
}

export function leaveOrigin(tx: object): void {
  origins.delete(tx);
}

export function originOf(tx: unknown): TransactionOrigin | undefined {
  return typeof tx === 'object' && tx !== null ? origins.get(tx) : undefined;
}
