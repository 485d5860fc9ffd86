// What can become of a transaction other than what was asked for.
import { TransportError } from '../core/errors.js';
import type { TransactionId } from '../core/transaction-id.js';
import { transactionText } from '../core/transaction-id.js';

export function transactionEnded(id: TransactionId, why: string): TransportError {
  return final('TRANSACTION_ENDED', `transaction ${transactionText(id)} is not open any more: ${why}`);
}

export function transactionAborted(id: TransactionId, cause: Error): TransportError {
  const text = `transaction ${transactionText(id)} was aborted, not committed, because something in it failed: ${cause.message}`;
  return final('TRANSACTION_ABORTED', text, cause);
}

export function outcomeUnknown(id: TransactionId, cause: unknown): TransportError {
  const text = `transaction ${transactionText(id)}: the broker was asked to commit it and gave no clear answer`;
  return final('TRANSACTION_OUTCOME_UNKNOWN', `${text}; whether it is committed or aborted is unknown`, cause);
}

export function transactionsUnavailable(why: string, cause?: unknown): TransportError {
  return final('TRANSACTIONS_UNAVAILABLE', `transactions: ${why}`, cause);
}

type TransactionCode =
  | 'TRANSACTION_ENDED'
  | 'TRANSACTION_ABORTED'
  | 'TRANSACTION_OUTCOME_UNKNOWN'
  | 'TRANSACTIONS_UNAVAILABLE';

function final(code: TransactionCode, text: string, cause?: unknown): TransportError {
  return new TransportError(code, text, { retriable: false, cause });
}
