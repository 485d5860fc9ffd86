// One transaction: what is published and acknowledged in it counts once it is committed, all of it or nothing. It knows
// what is under way in it, since a message that reaches a broker after the end would block its topic.
import { ConfigurationError, TransportError, containRejection, describeValue } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { TransactionId } from '../core/transaction-id.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { InTransaction, Transaction, TransactionState } from '../ports/transaction.js';
import { transactionAborted, transactionEnded } from './transaction-errors.js';

/** Whose acknowledgements are in it. */
export interface TransactionMember {
  committed(): void;
  /** They are in force no more. */
  aborted(): void;
}

/** What it asks its coordinator for. */
export interface CoordinatorCalls {
  addPartition(id: TransactionId, topic: string): Promise<void>;
  addSubscription(id: TransactionId, topic: string, subscription: string): Promise<void>;
  /** @throws TransportError as `Transaction.commit`. */
  commit(id: TransactionId): Promise<void>;
  /** @param once tries it once. @throws TransportError when no coordinator answered. */
  abort(id: TransactionId, once?: boolean): Promise<void>;
}

export interface TransactionParts {
  readonly id: TransactionId;
  readonly coordinator: CoordinatorCalls;
  /** What it is of. Elsewhere its id is another transaction's, whose end would be that of what is done in it. */
  readonly place: object;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** The broker may end it from here on, and not before. */
  readonly deadlineMs: number;
  /** Called once at its end. */
  readonly forget: (ended: OpenTransaction) => void;
}

export class OpenTransaction implements Transaction {
  readonly id: TransactionId;
  readonly #parts: TransactionParts;
  readonly #timer: Timer;
  #state: TransactionState = 'open';
  /** The end was asked for: what reaches a broker now is too late. */
  #endSent = false;
  #ending: Promise<void> | undefined;
  /** What the coordinator was told of, and will tell the outcome. */
  readonly #partitions = new Map<string, Promise<void>>();
  readonly #readyPartitions = new Set<string>();
  readonly #subscriptions = new Map<string, Promise<void>>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #members = new Set<TransactionMember>();
  readonly #publishers = new Set<{ flush(): void }>();
  #failure: Error | undefined;

  constructor(parts: TransactionParts) {
    this.id = parts.id;
    this.#parts = parts;
    const leftMs = Math.max(0, parts.deadlineMs - parts.clock.now());
    this.#timer = parts.clock.setTimer(leftMs, () => this.#timeIsUp());
  }

  get place(): object {
    return this.#parts.place;
  }

  get state(): TransactionState {
    return this.#state;
  }

  /** Whether a send or an acknowledgement may still go to a broker: after the end it would do harm. */
  get mayChange(): boolean {
    return !this.#endSent && this.#parts.clock.now() < this.#parts.deadlineMs;
  }

  /** @throws TransportError TRANSACTION_ENDED */
  checkMayChange(): void {
    if (!this.mayChange) throw this.#ended();
  }

  /**
   * A send or an acknowledgement in it: the end waits for it, and it is committed only if that succeeds.
   * @throws TransportError TRANSACTION_ENDED, and what `work` throws.
   */
  run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#state !== 'open') return Promise.reject(this.#ended());
    const outcome = work();
    this.#underWay.add(outcome);
    outcome.then(
      () => this.#underWay.delete(outcome),
      (error: unknown) => {
        this.#failure ??= error as Error;
        this.#underWay.delete(outcome);
      },
    );
    return outcome;
  }

  /** What is gathered there is sent before the end. */
  publishesBy(publisher: { flush(): void }): void {
    this.#publishers.add(publisher);
  }

  /** Whether messages may go to the partition at once. */
  hasPartition(topic: string): boolean {
    return this.#readyPartitions.has(topic);
  }

  /** Tells the coordinator once; without it the topic would never learn the outcome. @throws TransportError */
  addPartition(topic: string): Promise<void> {
    const known = this.#partitions.get(topic);
    if (known !== undefined) return known;
    // Whoever asks a coordinator for what is over waits for nothing.
    if (!this.mayChange) return Promise.reject(this.#ended());
    const adding = this.#parts.coordinator.addPartition(this.id, topic).then(() => {
      this.#readyPartitions.add(topic);
    });
    this.#partitions.set(topic, adding);
    return adding;
  }

  /** The same for a subscription on a topic. @throws TransportError */
  addSubscription(topic: string, subscription: string): Promise<void> {
    const key = `${topic} ${subscription}`;
    const known = this.#subscriptions.get(key);
    if (known !== undefined) return known;
    const adding = this.#parts.coordinator.addSubscription(this.id, topic, subscription);
    this.#subscriptions.set(key, adding);
    return adding;
  }

  /** Told the outcome. */
  join(member: TransactionMember): void {
    this.#members.add(member);
  }

  commit(): Promise<void> {
    return this.#end('committing', () => this.#commit());
  }

  abort(): Promise<void> {
    return this.#end('aborting', () => this.#abort());
  }

  /** Of its client: nobody can end it any more, and until it ends its topics stand still for their readers. */
  async close(): Promise<void> {
    const ending =
      this.#ending ?? (this.#mayEnd('aborting') ? this.#end('aborting', () => this.#abort(true)) : undefined);
    await ending?.catch(() => undefined);
    this.#timer.cancel();
  }

  /** A commit that failed and can be repeated was never asked for: the transaction is still to be ended, either way. */
  #mayEnd(state: 'committing' | 'aborting'): boolean {
    if (this.#state === 'open' || this.#state === state) return true;
    return this.#state === 'committing' && this.#ending === undefined;
  }

  /** The same end asked for again while it is under way is one end. */
  #end(state: 'committing' | 'aborting', end: () => Promise<void>): Promise<void> {
    if (!this.#mayEnd(state)) return Promise.reject(this.#ended());
    this.#state = state;
    this.#timer.cancel();
    this.#ending ??= end().finally(() => (this.#ending = undefined));
    return this.#ending;
  }

  async #commit(): Promise<void> {
    await this.#settled();
    const failure = this.#failure;
    if (failure !== undefined) {
      // Where that fails too, its time ends it: nothing of it counts in any case.
      await this.#abort().catch(() => this.#over('aborted'));
      throw transactionAborted(this.id, failure);
    }
    this.#endSent = true;
    try {
      await this.#parts.coordinator.commit(this.id);
    } catch (error) {
      if (error instanceof TransportError && error.retriable) throw error;
      const ended = error instanceof TransportError && error.code === 'TRANSACTION_ENDED';
      this.#over(ended ? 'timed-out' : 'error');
      throw error;
    }
    this.#over('committed');
  }

  async #abort(once = false): Promise<void> {
    await this.#settled();
    this.#endSent = true;
    try {
      await this.#parts.coordinator.abort(this.id, once);
    } catch (error) {
      // An earlier request to commit it, whose answer was a failure, had done so.
      if (error instanceof TransportError && error.code === 'TRANSACTION_ENDED') this.#over('committed');
      throw error;
    }
    this.#over('aborted');
  }

  #timeIsUp(): void {
    if (this.#state !== 'open') return;
    this.#state = 'timed-out';
    // The broker does it by itself. Asked to, it has done it once it answers, and then what was acknowledged can come again.
    const aborting = this.#settled().then(() => this.#parts.coordinator.abort(this.id));
    containRejection(aborting.catch(() => undefined).then(() => this.#over('timed-out')));
  }

  /** What was sent has its receipt or failed: nothing of it can come to a broker later. */
  async #settled(): Promise<void> {
    for (const publisher of this.#publishers) publisher.flush();
    while (this.#underWay.size > 0) await Promise.allSettled([...this.#underWay]);
  }

  #over(state: 'committed' | 'aborted' | 'timed-out' | 'error'): void {
    this.#state = state;
    this.#endSent = true;
    for (const member of this.#members) {
      if (state === 'committed') member.committed();
      else if (state !== 'error') member.aborted();
    }
    this.#members.clear();
    this.#parts.forget(this);
  }

  #ended(): TransportError {
    const { clock, deadlineMs, timeoutMs } = this.#parts;
    const isLate = this.#state === 'timed-out' || (!this.#endSent && clock.now() >= deadlineMs);
    return transactionEnded(this.id, isLate ? `its time of ${timeoutMs} ms was over` : `it is ${this.#state}`);
  }
}

/**
 * The transaction that a call was given; undefined for none.
 * @param place where the call goes; undefined for one that takes those of anywhere. @throws ConfigurationError
 */
export function transactionOf(options: InTransaction | undefined, place?: object): OpenTransaction | undefined {
  if (options === undefined) return undefined;
  const check = new OptionChecker();
  if (!check.object('options', options, '{ transaction }')) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, ['transaction']);
  const { transaction } = options as InTransaction;
  if (transaction !== undefined && !(transaction instanceof OpenTransaction)) {
    check.problem(`"transaction" must be one that newTransaction() made, got ${describeValue(transaction)}`);
  } else if (transaction !== undefined && place !== undefined && transaction.place !== place) {
    check.problem('"transaction" is of another broker or client; begin one with newTransaction() of this transport');
  }
  check.throwIfAny();
  return transaction as OpenTransaction | undefined;
}
