// Transactions of one client on the embedded broker: who publishes and acknowledges in them needs no registration first, and
// how one ended the broker remembers, so that a repeated commit is answered as the first one (T-35, T-36).
import { TransportError } from '../../core/errors.js';
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
  return {
    addPartition: () => Promise.resolve(),
    addSubscription: () => Promise.resolve(),
    commit: (id) => transactions.end(id, 'commit'),
    // Of a transaction that was never to be committed: when it is not known any more, it is aborted.
    abort: (id) =>
      transactions.end(id, 'abort').catch((error: unknown) => {
        if (!(error instanceof TransportError && error.code === 'TRANSACTION_ENDED')) throw error;
      }),
  };
}
