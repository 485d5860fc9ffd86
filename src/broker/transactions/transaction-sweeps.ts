// What is done for transactions that nobody asks about any more: those whose time is over are aborted, participants that
// missed an outcome are told again, and records that nobody needs go (T-37). Any number of sweepers may work at once: each
// change is one write that only one of them makes, and what is told twice does no harm.
import { isEnded } from './transaction-errors.js';
import { allDone, endTransaction, tellParticipants } from './transaction-ending.js';
import type { EndingParts } from './transaction-ending.js';
import { parseTransactionKey } from './txn-paths.js';
import type { StoredHeader } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';

export interface SweepParts extends EndingParts {
  /** True: stop at the next occasion; what is left is left to a later sweep. */
  readonly isClosed: () => boolean;
}

/** Records that are worked on at once. */
const PAGE = 500;

/** Open transactions whose deadline has come. Somebody who commits one at the same moment may win. */
export async function abortOverdue(parts: SweepParts): Promise<void> {
  const nowMs = parts.clock.now();
  for (;;) {
    const overdue = await parts.store.openPastDeadline(nowMs, PAGE);
    await allDone(overdue.map(({ transaction }) => abort(parts, transaction)));
    if (overdue.length < PAGE || parts.isClosed()) return;
  }
}

/** All that is open: for a coordinator that knows that nobody is there who could end it. */
export async function abortOpen(parts: SweepParts): Promise<void> {
  for (;;) {
    const open = await parts.store.open(PAGE);
    await allDone(open.map(({ transaction }) => abort(parts, transaction)));
    if (open.length < PAGE || parts.isClosed()) return;
  }
}

async function abort(parts: SweepParts, transaction: string): Promise<void> {
  try {
    await endTransaction(parts, parseTransactionKey(transaction), 'ABORTED');
  } catch (error) {
    if (!isEnded(error)) throw error;
  }
}

/**
 * In this order, so that no record goes while somebody may need it: participants of ended transactions are told again, then
 * headers go that are older than the retention and have no operations left, then events older than it.
 */
export async function collectEnded(parts: SweepParts, retentionMs: number): Promise<void> {
  const untilMs = parts.clock.now() - retentionMs;
  await tellAgain(parts);
  // Nothing can have ended by then.
  if (untilMs < 0) return;
  await deleteHeaders(parts, 'COMMITTED', untilMs);
  await deleteHeaders(parts, 'ABORTED', untilMs);
  await deleteEvents(parts, untilMs);
}

/**
 * An operation of a transaction that is not open is one that its participant has not dealt with: the event was lost, or
 * applying the outcome failed, or it was appended too late. Without a header the outcome is ABORTED (T-38).
 */
async function tellAgain(parts: SweepParts): Promise<void> {
  const { store } = parts;
  let transaction = await store.nextWithOps();
  while (transaction !== undefined && !parts.isClosed()) {
    const state = (await store.readHeader(transaction))?.header.state ?? 'ABORTED';
    if (state !== 'OPEN') await tellParticipants(parts, transaction, state);
    transaction = await store.nextWithOps(transaction);
  }
}

/** With operations left a header stays, for as long as it takes: their participants are told with each collection. */
async function deleteHeaders(parts: SweepParts, state: FinalState, untilMs: number): Promise<void> {
  let after: StoredHeader | undefined;
  do {
    const ended = await parts.store.ended({ state, untilMs, limit: PAGE, after });
    await allDone(ended.map((header) => deleteHeader(parts, header)));
    after = ended.length < PAGE ? undefined : ended.at(-1);
  } while (after !== undefined && !parts.isClosed());
}

async function deleteHeader({ store }: SweepParts, header: StoredHeader): Promise<void> {
  if (!(await store.hasOps(header.transaction))) await store.deleteHeader(header);
}

async function deleteEvents({ store, isClosed }: SweepParts, untilMs: number): Promise<void> {
  for (;;) {
    const events = await store.eventsUntil(untilMs, PAGE);
    await allDone(events.map((path) => store.deleteEvent(path)));
    if (events.length < PAGE || isClosed()) return;
  }
}
