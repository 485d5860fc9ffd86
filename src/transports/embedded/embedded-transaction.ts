// Transactions of one client on the embedded broker: who publishes and acknowledges in them needs no registration first, and
// how one ended the broker remembers, so that a repeated commit is answered as the first one (T-35, T-36).
import type { Clock } from '../../ports/clock.js';
import type { BrokerTransactions } from '../../broker/transactions/broker-transactions.js';
import { EndedOtherwise, isEnded } from '../../broker/transactions/transaction-errors.js';
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
  return new OpenTransaction({
    ...parts,
    id,
    coordinator: coordinatorCalls(transactions),
    place: transactions.place,
    deadlineMs,
  });
}

function coordinatorCalls(transactions: BrokerTransactions): CoordinatorCalls {
  return {
    addPartition: () => Promise.resolve(),
    addSubscription: () => Promise.resolve(),
    commit: (id) => transactions.end(id, 'commit'),
    // One that is not known any more is aborted. That it is committed, by a request that seemed to fail, is to be told.
    abort: async (id) => {
      try {
        await transactions.end(id, 'abort');
      } catch (error) {
        if (!isEnded(error) || (error instanceof EndedOtherwise && error.state === 'COMMITTED')) throw error;
      }
    },
  };
}
