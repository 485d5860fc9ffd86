// How a transaction ends: one write decides, and whoever has a part in it is told. Telling is repeated where it may have
// failed; deciding never is.
import type { Clock } from '../../ports/clock.js';
import { invalidTransition, isVersionConflict, transactionNotFound } from './transaction-errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import { transactionKey } from '../../core/transaction-id.js';
import type { StoredHeader, TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';
import type { TransactionState, TxnHeader, TxnOp } from './txn-records.js';

export interface EndingParts {
  readonly store: TxnMetadataStore;
  readonly clock: Clock;
}

/** What may follow a state; asked for what it is already, a transaction stays as it is (T-30, T-36). */
const FOLLOWED_BY: Readonly<Record<TransactionState, readonly FinalState[]>> = {
  OPEN: ['COMMITTED', 'ABORTED'],
  COMMITTED: ['COMMITTED'],
  ABORTED: ['ABORTED'],
};

/**
 * Resolves when the outcome is decided and everybody was told; they apply it in their own time (T-30). Asked again, for
 * whatever end, it tells them again, which repairs what an earlier call did not come to (T-36).
 * @param check of the header, before anything is decided.
 * @throws TransportError TRANSACTION_ENDED; what the store throws: then ask again.
 */
export async function endTransaction(
  parts: EndingParts,
  id: TransactionId,
  to: FinalState,
  check: (header: TxnHeader) => void = () => undefined,
): Promise<void> {
  const transaction = transactionKey(id);
  for (;;) {
    const found = await parts.store.readHeader(transaction);
    if (found === undefined) throw transactionNotFound(id);
    check(found.header);
    const { state } = found.header;
    if (!FOLLOWED_BY[state].includes(to)) {
      const ended = state as FinalState;
      // Whoever asks for another end may have got no answer to the first one, which told nobody.
      await tellParticipants(parts, transaction, ended);
      throw invalidTransition(id, ended, to);
    }
    if (state === to || (await isDecided(parts, found, to))) break;
  }
  await tellParticipants(parts, transaction, to);
}

/** False when somebody else was quicker: what they decided is to be read. */
async function isDecided({ store, clock }: EndingParts, open: StoredHeader, to: FinalState): Promise<boolean> {
  try {
    await store.finalizeHeader(open, to, clock.now());
    return true;
  } catch (error) {
    if (isVersionConflict(error)) return false;
    throw error;
  }
}

/** One event for each segment that is written to and one for each subscription that something is acknowledged on (T-36). */
export async function tellParticipants(
  { store, clock }: EndingParts,
  transaction: string,
  decision: FinalState,
): Promise<void> {
  const event = { transaction, decision };
  const participants = new Map<string, TxnOp>();
  for (const { op } of await store.opsOf(transaction)) {
    participants.set(JSON.stringify([op.segment, op.kind === 'ACK' ? op.subscription : null]), op);
  }
  await allDone(
    [...participants.values()].map((op) =>
      op.kind === 'ACK'
        ? store.publishSubscriptionEvent(op.segment, op.subscription, event, clock.now())
        : store.publishSegmentEvent(op.segment, event, clock.now()),
    ),
  );
}

/** Waits for all, also when some fail; then the first failure is thrown. */
export async function allDone(work: readonly Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
