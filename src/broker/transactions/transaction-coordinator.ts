// A transaction coordinator as PIP-473 has it: it begins transactions and decides their outcome, in records that any number
// of coordinators share. It knows no participants by itself: each leaves a record of what it did, which is how it is found
// and told, so there is nothing to register beforehand (T-35).
import { OptionChecker } from '../../core/options.js';
import type { Clock } from '../../ports/clock.js';
import { ActiveTransactions } from './active-transactions.js';
import type { CoordinatorOptions, ResolvedCoordinatorOptions } from './coordinator-options.js';
import { resolveCoordinatorOptions } from './coordinator-options.js';
import { SweepTimer } from './sweep-timer.js';
import { endTransaction } from './transaction-ending.js';
import {
  coordinatorClosed,
  isEnded,
  isVersionConflict,
  notTheOwner,
  storeFailed,
  unsupportedAction,
} from './transaction-errors.js';
import type { TransactionId } from '../../core/transaction-id.js';
import { transactionKey } from '../../core/transaction-id.js';
import { parseTransactionKey } from './txn-paths.js';
import { TransactionNumbers } from './transaction-numbers.js';
import { abortOpen, abortOverdue, collectEnded } from './transaction-sweeps.js';
import type { SweepParts } from './transaction-sweeps.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import type { FinalState } from './txn-paths.js';
import type { TxnHeader } from './txn-records.js';

export type TransactionAction = 'commit' | 'abort';

export interface CoordinatorParts {
  readonly store: TxnMetadataStore;
  readonly clock: Clock;
  /** Its number, a part of each id. @default 0 */
  readonly coordinator?: number | undefined;
  readonly options?: CoordinatorOptions | undefined;
  /** A sweep failed; the next one does what it left. @default nothing is done */
  readonly onSweepFailed?: ((error: Error) => void) | undefined;
}

export interface NewTransaction {
  /** From now, milliseconds; the next sweep after it aborts what is still open. */
  readonly timeoutMs: number;
  /** Who may end it. @default anyone (T-47) */
  readonly owner?: string | undefined;
}

/** What each of them throws when its store fails: TransportError BROKER_ERROR, retriable; then the same call may be made again. */
export class TransactionCoordinator {
  readonly #store: TxnMetadataStore;
  readonly #clock: Clock;
  readonly #coordinator: number;
  readonly #options: ResolvedCoordinatorOptions;
  readonly #numbers: TransactionNumbers;
  readonly #active: ActiveTransactions;
  readonly #timer: SweepTimer;
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @throws ConfigurationError */
  constructor({ store, clock, coordinator = 0, options = {}, onSweepFailed = () => undefined }: CoordinatorParts) {
    this.#store = store;
    this.#clock = clock;
    this.#coordinator = coordinator;
    this.#options = resolveCoordinatorOptions(options);
    this.#numbers = new TransactionNumbers(store, coordinator);
    this.#active = new ActiveTransactions(store, coordinator, this.#options.maxActiveTransactions);
    this.#timer = new SweepTimer({
      clock,
      sweeps: [
        { intervalMs: this.#options.sweepIntervalMs, run: () => this.#abortOverdue() },
        { intervalMs: this.#options.collectionIntervalMs, run: () => this.#collect() },
      ],
      isNeeded: async () => (await store.open(1)).length > 0 || (await store.nextWithOps()) !== undefined,
      onFailed: onSweepFailed,
    });
  }

  /** Looks after what earlier coordinators left. Without it what is left waits for the first sweep after a new transaction. */
  start(): Promise<void> {
    return this.#ask(async () => {
      await this.#active.load();
      await this.#timer.runAll();
    });
  }

  /**
   * Ids are never given twice, whatever becomes of the process (T-35).
   * @throws ConfigurationError; TransportError BROKER_ERROR, retriable, also when too many are open (T-06); ALREADY_CLOSED.
   */
  newTransaction(wanted: NewTransaction): Promise<TransactionId> {
    return this.#ask(async () => {
      const { timeoutMs, owner = null } = wanted;
      const check = new OptionChecker('transaction');
      check.required({ timeoutMs }, { timeoutMs: 'a duration in milliseconds' });
      check.durationMs('timeoutMs', timeoutMs, { minMs: 1 });
      check.throwIfAny();
      try {
        return parseTransactionKey(await this.#active.begin(() => this.#create(Math.ceil(timeoutMs), owner)));
      } finally {
        // Also for one whose answer is lost: nobody else will end it.
        this.#timer.arm();
      }
    });
  }

  /**
   * Resolves when the outcome is decided. Repeated, it succeeds again for as long as the coordinator remembers, and tells all
   * participants once more (T-36). Until a sweep has aborted it, a transaction can be committed after its timeout (T-37).
   * After BROKER_ERROR it may be decided as was asked, or not: ask again.
   * @param who asks for it. @default nobody that has a name
   * @throws TransportError TRANSACTION_ENDED when it is not known or ended otherwise, NOT_SUPPORTED for an unknown action,
   *   NOT_ALLOWED for somebody else's (T-47), BROKER_ERROR, ALREADY_CLOSED.
   */
  end(id: TransactionId, action: TransactionAction, who: string | null = null): Promise<void> {
    return this.#ask(async () => {
      const to = outcomeOf(id, action);
      try {
        await endTransaction(this.#sweepParts, id, to, ({ owner }) => checkOwner(id, owner, who));
      } catch (error) {
        if (isEnded(error)) this.#forget(id);
        throw error;
      }
      this.#forget(id);
    });
  }

  /** Aborts everything that is open, whoever has it: before `start`, by whoever knows that nobody has it any more. */
  abortOpen(): Promise<void> {
    return this.#ask(() => abortOpen(this.#sweepParts));
  }

  /** Aborts what is open past its deadline, now: what else a timer does. */
  abortOverdue(): Promise<void> {
    return this.#ask(() => this.#abortOverdue());
  }

  /** Tells participants of what is not applied, and deletes what nobody needs, now: what else a timer does. */
  collect(): Promise<void> {
    return this.#ask(() => this.#collect());
  }

  /** Waits for what is under way. What is open stays open; its store stays open too. More calls than one are allowed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#timer.close();
    await Promise.allSettled(this.#underWay);
  }

  async #create(timeoutMs: number, owner: string | null): Promise<string> {
    for (;;) {
      const id = { mostBits: BigInt(this.#coordinator), leastBits: await this.#numbers.next() };
      const transaction = transactionKey(id);
      const createdAtMs = this.#clock.now();
      try {
        await this.#store.createHeader(transaction, {
          state: 'OPEN',
          timeoutMs,
          createdAtMs,
          finalizedAtMs: null,
          owner,
        });
        return transaction;
      } catch (error) {
        // The record of numbers is older than the headers: the number was given before.
        if (!isVersionConflict(error)) throw error;
      }
    }
  }

  async #abortOverdue(): Promise<void> {
    await abortOverdue(this.#sweepParts);
    await this.#active.forgetEnded();
  }

  #collect(): Promise<void> {
    return collectEnded(this.#sweepParts, this.#options.retentionMs);
  }

  #forget(id: TransactionId): void {
    this.#active.ended(transactionKey(id));
    if (this.#active.isEmpty) this.#timer.lookSoon();
  }

  get #sweepParts(): SweepParts {
    return { store: this.#store, clock: this.#clock, isClosed: () => this.#isClosed };
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw coordinatorClosed(this.#coordinator);
    const working = work();
    this.#underWay.add(working);
    try {
      return await working;
    } catch (error) {
      throw storeFailed(error);
    } finally {
      this.#underWay.delete(working);
    }
  }
}

const OUTCOMES = new Map<unknown, FinalState>([
  ['commit', 'COMMITTED'],
  ['abort', 'ABORTED'],
]);

function outcomeOf(id: TransactionId, action: TransactionAction): FinalState {
  const outcome = OUTCOMES.get(action);
  if (outcome === undefined) throw unsupportedAction(id, action);
  return outcome;
}

/** Whether `who` may do everything, like a superuser, is the caller's to know. */
function checkOwner(id: TransactionId, owner: TxnHeader['owner'], who: string | null): void {
  if (owner !== null && owner !== who) throw notTheOwner(id, who);
}
