// What a coordinator refuses, in Pulsar's words and in the codes that the wire client has for the same answers.
import { PulseworkError, TransportError } from '../../core/errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import { transactionText } from '../../core/transaction-id.js';
import { parseTransactionKey } from './txn-paths.js';
import type { FinalState } from './txn-paths.js';

/** Pulsar's TransactionNotFound (T-36). */
export function transactionNotFound(id: TransactionId): TransportError {
  return final('TRANSACTION_ENDED', `Transaction not found: ${transactionText(id)}`);
}

/** Asked to end otherwise than it ended; whoever asked learns how it did. */
export class EndedOtherwise extends TransportError {
  readonly state: FinalState;

  constructor(message: string, state: FinalState) {
    super('TRANSACTION_ENDED', message, { retriable: false });
    this.state = state;
  }
}

/** Pulsar's InvalidTxnStatus (T-36). */
export function invalidTransition(id: TransactionId, from: FinalState, to: FinalState): TransportError {
  return new EndedOtherwise(`Transaction ${transactionText(id)} is ${from}, cannot transition to ${to}`, from);
}

/** Pulsar's UnsupportedTxnAction (T-36). */
export function unsupportedAction(id: TransactionId, action: unknown): TransportError {
  const text = `Transaction \`${transactionText(id)}\` receive unsupported txnAction ${String(action)}`;
  return final('NOT_SUPPORTED', text);
}

/** Somebody else's (T-47). */
export function notTheOwner(id: TransactionId, who: string | null): TransportError {
  const name = who === null ? 'a client without a name' : `client "${who}"`;
  return final('NOT_ALLOWED', `${name} is not the owner of transaction ${transactionText(id)}`);
}

/** Pulsar's ReachMaxActiveTxn (T-06). When others have ended, it can be had. */
export function tooManyActive(coordinator: number, max: number): TransportError {
  const text = `transaction coordinator ${coordinator} has ${max} open transactions, as many as "maxActiveTransactions"`;
  return new TransportError('BROKER_ERROR', `${text} allows; end some first`, { retriable: true });
}

/** Pulsar's NotAllowed `… already <STATE> — TxnConflict` (T-44): nothing can be published in it. */
export function notOpenOnTopic(key: string, topic: string): TransportError {
  const text = `Transaction ${transactionText(parseTransactionKey(key))} is not open on topic "${topic}"`;
  return final('TRANSACTION_ENDED', text);
}

/** The topic was unloaded or deleted meanwhile. */
export function bufferClosed(): TransportError {
  return new TransportError('BROKER_ERROR', 'the topic is being loaded again; its transactions come with it', {
    retriable: true,
  });
}

export function coordinatorClosed(coordinator: number): TransportError {
  return final('ALREADY_CLOSED', `transaction coordinator ${coordinator} is closed`);
}

/**
 * What a call throws whose store failed: Pulsar's MetadataError. Whether anything was written is unknown; the same call can be
 * made again. Everything else, such as a record that cannot be read, is as it was.
 */
export function storeFailed(error: unknown): unknown {
  if (!(error instanceof PulseworkError) || !PASSING.includes(error.code)) return error;
  return new TransportError('BROKER_ERROR', `transactions: ${error.message}`, { retriable: true, cause: error });
}

const PASSING: readonly string[] = ['STORE_FAILED', 'STORE_FULL', 'STORE_NOT_WRITABLE', 'STORE_LOCKED'];

/** Nothing to be ended any more, or otherwise than asked for. */
export function isEnded(error: unknown): boolean {
  return error instanceof TransportError && error.code === 'TRANSACTION_ENDED';
}

/** A record changed between reading and writing it. */
export function isVersionConflict(error: unknown): boolean {
  return error instanceof PulseworkError && error.code === 'STORE_VERSION_CONFLICT';
}

function final(
  code: 'TRANSACTION_ENDED' | 'NOT_SUPPORTED' | 'NOT_ALLOWED' | 'ALREADY_CLOSED',
  text: string,
): TransportError {
  return new TransportError(code, text, { retriable: false });
}
