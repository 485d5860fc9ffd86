// What is refused of acknowledgements in transactions, in Pulsar's words and in the codes that the wire client has for the
// same answers.
import { PulseworkError, TransportError } from '../../core/errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import { transactionText } from '../../core/transaction-id.js';
import { parseTransactionKey } from './txn-paths.js';
import type { TransactionState } from './txn-records.js';

/** Which acknowledgement of which subscription. */
export interface AckSubject {
  readonly topic: string;
  readonly subscription: string;
  /** Its key. */
  readonly transaction: string;
}

/** `ledger:entry`. */
export interface EntryId {
  readonly ledgerId: number;
  readonly entryId: number;
}

export function acknowledgedBefore(subject: AckSubject, id: EntryId): TransportError {
  return conflict(subject, `try to ack message:${entryText(id)} already acked before.`);
}

/** @param ofBatch single messages of a batch were meant. */
export function alreadyPending(subject: AckSubject, id: EntryId, ofBatch: boolean): TransportError {
  return conflict(subject, `try to ack ${ofBatch ? 'batch ' : ''}message:${entryText(id)} in pending ack status.`);
}

export function behindMarkDelete(subject: AckSubject, id: EntryId, markDelete: EntryId): TransportError {
  const range = `within range of cursor's markDeletePosition: ${entryText(markDelete)}`;
  return conflict(subject, `try to cumulative ack position: ${entryText(id)} ${range}`);
}

export function behindCumulative(subject: AckSubject, id: EntryId, current: EntryId): TransportError {
  const range = `within range of current currentPosition: ${entryText(current)}`;
  return conflict(subject, `try to cumulative batch ack position: ${entryText(id)} ${range}`);
}

export function manyCumulative(subject: AckSubject): TransportError {
  const text = `${prefixOf(subject)} invalid cumulative ack received with multiple message ids.`;
  return new TransportError('NOT_ALLOWED', text, { retriable: false });
}

/** Its records could not be read: nothing can be said about what is pending until the subscription is opened anew. */
export function notReplayed(cause: unknown): TransportError {
  return new TransportError('BROKER_ERROR', 'PendingAckHandle not replay error!', { retriable: true, cause });
}

export function pendingAcksClosed(): TransportError {
  return new TransportError('BROKER_ERROR', 'PendingAckHandle have been closed!', { retriable: true });
}

export function pendingAckStoreClosed(): PulseworkError {
  return new PulseworkError('ALREADY_CLOSED', 'PendingAckStore is closed');
}

export function transactionEnding(key: string): TransportError {
  const text = `Transaction ${transactionText(parseTransactionKey(key))} is being ended`;
  return new TransportError('TRANSACTION_ENDED', text, { retriable: false });
}

export function transactionNotOpen(id: TransactionId, state: TransactionState): TransportError {
  const text = `Transaction ${transactionText(id)} is ${state}: nothing can be acknowledged in it`;
  return new TransportError('TRANSACTION_ENDED', text, { retriable: false });
}

export function isTransactionConflict(error: unknown): boolean {
  return error instanceof PulseworkError && error.code === 'TRANSACTION_CONFLICT';
}

function conflict(subject: AckSubject, what: string): TransportError {
  return new TransportError('TRANSACTION_CONFLICT', `${prefixOf(subject)} ${what}`, { retriable: false });
}

function prefixOf({ topic, subscription, transaction }: AckSubject): string {
  return `[${topic}][${subscription}] Transaction:${transactionText(parseTransactionKey(transaction))}`;
}

function entryText({ ledgerId, entryId }: EntryId): string {
  return `${ledgerId}:${entryId}`;
}
