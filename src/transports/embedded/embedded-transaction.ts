// Transactions of one client on the embedded broker: who publishes and acknowledges in them needs no registration first, and
// how one ended the broker remembers, so that a repeated commit is answered as the first one (T-35, T-36).
import { TransportError } from '../../core/errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import type { Clock } from '../../ports/clock.js';
import type { BrokerTransactions } from '../../broker/transactions/broker-transactions.js';
import { OpenTransaction } from '../../transactions/open-transaction.js';
import type { CoordinatorCalls } from '../../transactions/open-transaction.js';

export interface BeginParts {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Called once at its end. */
  readonly forget: (ended: OpenTransaction) => void;
}

/** @throws TransportError BROKER_ERROR (retriable), ALREADY_CLOSED. */
export async function beginOn(transactions: BrokerTransactions, parts: BeginParts): Promise<OpenTransaction> {
  const { clock, timeoutMs } = parts;
  // The broker counts from later: here it is over first.
  const deadlineMs = clock.now() + timeoutMs;
  const id = await transactions.begin({ timeoutMs });
  return new OpenTransaction({ ...parts, id, coordinator: coordinatorCalls(transactions), deadlineMs });
}

function coordinatorCalls(transactions: BrokerTransactions): CoordinatorCalls {
  let mayBeCommitted = false;
  return {
    addPartition: () => Promise.resolve(),
    addSubscription: () => Promise.resolve(),
    commit: (id) => {
      mayBeCommitted = true;
      return transactions.end(id, 'commit');
    },
    // One that was never to be committed is aborted when it is not known any more. Else its header decides.
    abort: async (id) => {
      try {
        await transactions.end(id, 'abort');
      } catch (error) {
        if (!isEnded(error) || (mayBeCommitted && (await isCommitted(transactions, id)))) throw error;
      }
    },
  };
}

/** Of one that has ended: asked for again, a commit succeeds where it was the end. */
async function isCommitted(transactions: BrokerTransactions, id: TransactionId): Promise<boolean> {
  try {
    await transactions.end(id, 'commit');
    return true;
  } catch (error) {
    if (isEnded(error)) return false;
    throw error;
  }
}

function isEnded(error: unknown): boolean {
  return error instanceof TransportError && error.code === 'TRANSACTION_ENDED';
}
