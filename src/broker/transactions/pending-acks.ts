// What one subscription acknowledged in transactions that are still open, and what their ends do to it: a commit
// acknowledges, an abort frees (T-10 to T-20). Nothing happens before what was kept of it is known again.
import type { Clock } from '../../ports/clock.js';
import type { AckSet } from '../ack-set.js';
import type { Stored } from '../broker-store.js';
import type { MessagePlace } from '../topic-subscription.js';
import { ackedEntries, ackedPlace, entryParts, normalPlace, partOf, placeOf } from './acked-entries.js';
import * as errors from './pending-ack-errors.js';
import type { PendingAcksState } from './pending-ack-gate.js';
import { PendingAckGate } from './pending-ack-gate.js';
import type { AckedEntry, PendingAckStore, PendingAckStoreProvider, PendingAckTarget } from './pending-ack-store.js';
import type { EntryPart } from './pending-positions.js';
import { PendingState } from './pending-state.js';
import type { PendingFacts, PendingOfTransaction } from './pending-state.js';
import { isEnded } from './transaction-errors.js';
import { TransactionTurns } from './transaction-turns.js';

/** What happens to the subscription. Called in the caller's own turn; none of these may throw. */
export interface PendingAckSubscription extends PendingFacts {
  /** Undefined when the entry was trimmed: then it was acknowledged by everybody. */
  positionOf(ledgerId: number, entryId: number): number | undefined;
  /** Acknowledged in a transaction that may still abort: whoever holds it does so no more (T-19). */
  left(part: EntryPart): void;
  /**
   * Committed: acknowledged like any other, and so released where the order of its key waits for it (K-28). Stored also where
   * it was acknowledged before, for that may have failed. Resolves when it would survive; may reject, and is called again.
   */
  acknowledge(place: MessagePlace): Stored;
  /** The same of everything up to and including it. */
  acknowledgeUpTo(place: MessagePlace): Stored;
  /**
   * Aborted: whoever holds the rest of such an entry does so no more, and it is sent again with its count raised on Shared
   * and Key_Shared. On Exclusive and Failover the active consumer asks for it (T-17). What was withheld from a consumer that
   * it was never sent to is sent everywhere, so it is called without positions too.
   */
  redeliver(positions: readonly number[]): void;
}

interface RecordSteps {
  /** @throws TransportError TRANSACTION_CONFLICT; then nothing has changed. */
  readonly reserve: () => void;
  readonly append: () => Promise<void>;
  /** What was reserved is pending. */
  readonly confirm: () => void;
  /** What was reserved is free. */
  readonly release: () => void;
  /** After `confirm`, unless the append failed. */
  readonly recorded?: () => void;
}

/** How often using a subscription is a reason to look for ended transactions. */
const LOOK_INTERVAL_MS = 1_000;

export class PendingAcks {
  readonly #subscription: PendingAckSubscription;
  readonly #clock: Clock;
  readonly #pending: PendingState;
  readonly #gate: PendingAckGate;
  readonly #turns = new TransactionTurns();
  /** All of each transaction, also what was acknowledged without it since: storing that may have failed (T-14). */
  readonly #recorded = new Map<string, EntryPart[]>();
  /** In the cursor's memory, and not known to be stored there. */
  readonly #unstored = new Map<string, PendingOfTransaction>();
  #lookedAtMs = -Infinity;

  constructor(subscription: PendingAckSubscription, provider: PendingAckStoreProvider, clock: Clock) {
    this.#subscription = subscription;
    this.#clock = clock;
    this.#pending = new PendingState(subscription);
    this.#gate = new PendingAckGate({
      open: () => provider.open({ topic: subscription.topic, subscription: subscription.subscription }),
      replay: (store) => store.replay(this.#target()),
    });
  }

  get state(): PendingAcksState {
    return this.#gate.state;
  }

  /** Keys of those that have something pending, so that whoever ends them can ask what became of them. */
  get transactions(): readonly string[] {
    return [...new Set([...this.#pending.transactions, ...this.#unstored.keys()])];
  }

  /**
   * Resolves when it is ready: no consumer is added before (T-20). More calls than one are allowed.
   * @throws TransportError BROKER_ERROR, retriable, when what was kept cannot be read, or after `close`.
   */
  open(): Promise<void> {
    return this.#gate.open();
  }

  /** For dispatchers: whether no message of the entry may be sent now (T-15). It comes back by `redeliver`, or never. */
  withholds(position: number): boolean {
    return this.#pending.withholds(position);
  }

  /** For dispatchers, instead of the cursor's: the messages of a batch that may be sent; undefined for all. */
  unackedOf(position: number): AckSet | undefined {
    return this.#pending.unackedOf(position);
  }

  /**
   * All of them or none (T-11). Resolves when recorded, so that it survives; they are pending from then on. What is pending
   * or being recorded conflicts with it, of its own transaction too (T-10). What rejects with another code than
   * TRANSACTION_CONFLICT or TRANSACTION_ENDED may have been recorded: it stays pending until the transaction ends (T-13).
   * @throws TransportError TRANSACTION_CONFLICT; TRANSACTION_ENDED; BROKER_ERROR (retriable) in the states `error`, `closed`.
   */
  acknowledge(transaction: string, places: readonly MessagePlace[]): Promise<void> {
    return this.#gate.pass(async (store) => {
      const parts = entryParts(places, this.#subscription);
      const entries = ackedEntries(parts, this.#subscription);
      await this.#record(transaction, store, {
        reserve: () => this.#pending.reserve(transaction, parts),
        append: () => store.appendIndividual(transaction, entries),
        recorded: () => {
          for (const part of parts) this.#subscription.left(part);
        },
        confirm: () => {
          this.#pending.confirm(transaction, parts);
          this.#keep(transaction, parts);
        },
        release: () => this.#pending.release(parts),
      });
    });
  }

  /**
   * Everything up to and including one message. One transaction at a time, and only ever further (T-12).
   * @throws TransportError as `acknowledge`; NOT_ALLOWED unless it is one place.
   */
  acknowledgeUpTo(transaction: string, places: readonly MessagePlace[]): Promise<void> {
    return this.#gate.pass(async (store) => {
      const { topic, subscription } = this.#subscription;
      const [only, ...more] = places;
      if (only === undefined || more.length > 0) throw errors.manyCumulative({ topic, subscription, transaction });
      const place = normalPlace(only, this.#subscription);
      const entry = ackedPlace(place, this.#subscription);
      await this.#record(transaction, store, {
        reserve: () => this.#pending.reserveUpTo(transaction, place),
        append: () => store.appendCumulative(transaction, entry),
        confirm: () => this.#pending.confirmUpTo(transaction, place),
        release: () => this.#pending.releaseUpTo(transaction),
      });
    });
  }

  /** Whoever coordinates says so. A transaction that is unknown here is done (T-16). Rejects where it must be called again. */
  commit(transaction: string): Promise<void> {
    return this.#gate.pass(async (store) => {
      await this.#turns.end(transaction, () => this.#commit(transaction, () => store.appendCommitMark(transaction)));
      await store.applied(transaction);
    });
  }

  /** The same; what it acknowledged is free (T-17). A cumulative acknowledgement brings nothing back by itself. */
  abort(transaction: string): Promise<void> {
    return this.#gate.pass(async (store) => {
      await this.#turns.end(transaction, () => this.#abort(transaction, () => store.appendAbortMark(transaction)));
      await store.applied(transaction);
    });
  }

  /** Acknowledged without a transaction. @param batchIndex -1 for the whole entry. */
  acknowledged(position: number, batchIndex: number): void {
    this.#pending.acknowledged(position, batchIndex);
  }

  /** The same of everything in `from` to `to`, both included. */
  acknowledgedRange(from: number, to: number): void {
    this.#pending.acknowledgedRange(from, to);
  }

  /** The subscription is used: from time to time a reason to see which transactions have ended, if nobody told. */
  used(): void {
    const { store } = this.#gate;
    const nowMs = this.#clock.now();
    if (store === undefined || nowMs - this.#lookedAtMs < LOOK_INTERVAL_MS) return;
    this.#lookedAtMs = nowMs;
    void store.reconcile();
  }

  /** The subscription is deleted: nothing is kept of it, and it is closed. Rejects where something may be left. */
  async remove(): Promise<void> {
    await this.#gate.pass(async (store) => {
      await this.#turns.allRecorded();
      await store.removeAll();
    });
    await this.close();
  }

  /** Waits for what is being recorded. More calls than one are allowed. */
  close(): Promise<void> {
    return this.#gate.close(() => this.#turns.allRecorded());
  }

  async #record(transaction: string, store: PendingAckStore, steps: RecordSteps): Promise<void> {
    try {
      await this.#recordOnce(transaction, steps);
    } catch (error) {
      if (!errors.isTransactionConflict(error)) throw error;
      // The other transaction may have ended, and nobody told.
      await store.reconcile();
      if (this.#gate.state === 'closed') throw errors.pendingAcksClosed();
      await this.#recordOnce(transaction, steps);
    }
  }

  async #recordOnce(transaction: string, steps: RecordSteps): Promise<void> {
    if (this.#turns.isEnding(transaction) || this.#unstored.has(transaction))
      throw errors.transactionEnding(transaction);
    // Before it is recorded, not after: what conflicts leaves no record (T-13).
    steps.reserve();
    await this.#turns.record(transaction, recordReserved(steps));
  }

  async #commit(transaction: string, mark: () => Promise<void>): Promise<void> {
    const unstored = this.#unstored.get(transaction);
    if (unstored === undefined) {
      if (!this.#pending.has(transaction) && !this.#recorded.has(transaction)) return;
      await mark();
    }
    const { parts, cumulative } = unstored ?? this.#take(transaction);
    this.#unstored.set(transaction, { parts, cumulative });
    const stored = parts.flatMap((part) => placesOf(part)).map((place) => this.#subscription.acknowledge(place));
    if (cumulative !== undefined) stored.push(this.#subscription.acknowledgeUpTo(cumulative));
    await Promise.all(stored.filter((one) => one !== undefined));
    this.#unstored.delete(transaction);
  }

  #keep(transaction: string, parts: readonly EntryPart[]): void {
    const kept = this.#recorded.get(transaction);
    if (kept === undefined) this.#recorded.set(transaction, [...parts]);
    else kept.push(...parts);
  }

  #take(transaction: string): PendingOfTransaction {
    const { cumulative } = this.#pending.take(transaction);
    const parts = this.#recorded.get(transaction) ?? [];
    this.#recorded.delete(transaction);
    return { parts, cumulative };
  }

  async #abort(transaction: string, mark: () => Promise<void>): Promise<void> {
    this.#recorded.delete(transaction);
    if (!this.#pending.has(transaction)) return;
    await mark();
    const { parts } = this.#pending.take(transaction);
    this.#subscription.redeliver(parts.map(({ position }) => position));
  }

  #target(): PendingAckTarget {
    const unmarked = (): Promise<void> => Promise.resolve();
    return {
      individual: (transaction, entries) => this.#restore(transaction, entries),
      cumulative: (transaction, entry) => {
        const place = placeOf(entry, this.#subscription);
        if (place !== undefined) this.#pending.restoreUpTo(transaction, place);
      },
      committed: (transaction) => this.#turns.end(transaction, () => this.#commit(transaction, unmarked)),
      aborted: (transaction) => this.#turns.end(transaction, () => this.#abort(transaction, unmarked)),
    };
  }

  #restore(transaction: string, entries: readonly AckedEntry[]): void {
    const parts = entries.map((entry) => partOf(entry, this.#subscription)).filter((part) => part !== undefined);
    this.#pending.restore(transaction, parts);
    this.#keep(transaction, parts);
  }
}

async function recordReserved({ append, recorded, confirm, release }: RecordSteps): Promise<void> {
  try {
    await append();
  } catch (error) {
    // Whether it is recorded is unknown otherwise: were it free, a commit would acknowledge what others have by now.
    if (isEnded(error)) release();
    else confirm();
    throw error;
  }
  confirm();
  recorded?.();
}

function placesOf({ position, indexes }: EntryPart): readonly MessagePlace[] {
  return (indexes ?? [-1]).map((batchIndex) => ({ position, batchIndex }));
}
