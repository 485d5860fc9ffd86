// Transactions outside handlers: what a function publishes counts together once it has resolved, and not at all when it throws.
// Also asks, at start, whether there are any: a handler must not find out with its first message.
import { exponentialBackoff } from '../core/backoff.js';
import { PulseworkError, TransportError, containRejection, toError } from '../core/errors.js';
import type { ErrorCode } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { Topic } from '../core/topic.js';
import { DEFAULT_TRANSACTIONAL } from '../core/transactional-options.js';
import type { TransactionalOptions } from '../core/transactional-options.js';
import type { Clock } from '../ports/clock.js';
import type { Transaction } from '../ports/transaction.js';
import type { Transport } from '../ports/transport.js';
import { startFailed } from './lifecycle.js';
import type { PortCalls } from './port-calls.js';
import type { Publishers } from './publishers.js';
import type { TopicPublisher } from './topic-publisher.js';
import { topicPublisher } from './topic-publisher.js';

export interface RuntimeTransaction {
  /**
   * Publishes in it. A receipt says that the broker has the message; readers see it once all of it is committed. One that
   * failed means that the transaction is aborted, whatever becomes of its error.
   */
  publisher<In>(topic: Topic<In>): TopicPublisher<In>;
  /** Aborts when its time is over, or when a drain or close of the runtime does not wait for it any longer. */
  readonly signal: AbortSignal;
}

/** What may be published in it resolves before it does; what it gives comes out. */
export type TransactionWork<T> = (transaction: RuntimeTransaction) => T | Promise<T>;

export interface RuntimeTransactionsParts {
  readonly transport: Transport;
  readonly publishers: Publishers;
  readonly calls: PortCalls;
  readonly clock: Clock;
  readonly random: () => number;
  readonly fullName: (name: string) => string;
}

const SWITCH_ON =
  'switch transactions on at the brokers (transactionCoordinatorEnabled=true), or leave "transactional" out';

const WITHOUT: readonly ErrorCode[] = ['TRANSACTIONS_UNAVAILABLE', 'NOT_SUPPORTED', 'NOT_ALLOWED'];

/** Between requests to commit that gave no answer. */
const REPEAT_BACKOFF = exponentialBackoff({ minMs: 100, maxMs: 5_000 });

export class RuntimeTransactions {
  readonly #parts: RuntimeTransactionsParts;
  readonly #open = new Set<OpenWork>();

  constructor(parts: RuntimeTransactionsParts) {
    this.#parts = parts;
  }

  /** @throws PulseworkError START_FAILED where none can be begun. @param handler the one that needs them */
  async check(handler: string): Promise<void> {
    try {
      const transaction = await this.#begin(DEFAULT_TRANSACTIONAL.timeoutMs);
      await this.#parts.calls.run('aborting a transaction', () => transaction.abort());
    } catch (error) {
      const what = `handler ${JSON.stringify(handler)} cannot start: it is "transactional", and no transaction can be begun`;
      throw startFailed(hasNone(error) ? `${what}; ${SWITCH_ON}` : what, error);
    }
  }

  async run<T>(work: TransactionWork<T>, options: TransactionalOptions = {}): Promise<T> {
    const check = new OptionChecker('transaction');
    check.required({ work }, { work: 'a function that publishes' });
    check.function('work', work);
    check.options(options, Object.keys(DEFAULT_TRANSACTIONAL));
    check.durationMs('timeoutMs', options.timeoutMs, { minMs: 1 });
    check.throwIfAny();
    const { timeoutMs = DEFAULT_TRANSACTIONAL.timeoutMs } = options;
    const deadlineMs = this.#parts.clock.now() + timeoutMs;
    const open = new OpenWork(await this.#begin(timeoutMs), { ...this.#parts, deadlineMs, timeoutMs });
    this.#open.add(open);
    try {
      return await open.run(work);
    } finally {
      this.#open.delete(open);
    }
  }

  /** Resolves when none is open. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.allSettled([...this.#open].map(({ ended }) => ended));
  }

  /** Tells what is open to end. */
  interrupt(reason: Error): void {
    for (const open of this.#open) open.end(reason);
  }

  async #begin(timeoutMs: number): Promise<Transaction> {
    const { transport, calls } = this.#parts;
    const begin = transport.newTransaction?.bind(transport);
    if (begin === undefined || !transport.capabilities.has('transactions'))
      throw new TransportError('NOT_SUPPORTED', `the ${transport.name} transport has no transactions`, {
        retriable: false,
      });
    let begun: Promise<Transaction> | undefined;
    try {
      return await calls.run('beginning a transaction', () => (begun = begin({ timeoutMs })));
    } catch (error) {
      // One that begins after its time limit belongs to nobody, and readers would wait for it.
      containRejection(begun?.then((late) => late.abort()));
      throw error;
    }
  }
}

interface OpenWorkParts extends RuntimeTransactionsParts {
  readonly timeoutMs: number;
  /** Epoch milliseconds: then the broker aborts it. */
  readonly deadlineMs: number;
}

/** One function and its transaction. */
class OpenWork implements RuntimeTransaction {
  readonly ended: Promise<void>;
  readonly #transaction: Transaction;
  readonly #parts: OpenWorkParts;
  readonly #end = new AbortController();
  readonly #publishing = new Set<Promise<unknown>>();
  #failure: Error | undefined;
  #takes = true;
  #hasEnded: () => void = () => undefined;

  constructor(transaction: Transaction, parts: OpenWorkParts) {
    this.#transaction = transaction;
    this.#parts = parts;
    this.ended = new Promise((resolve) => (this.#hasEnded = resolve));
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  publisher<In>(topic: Topic<In>): TopicPublisher<In> {
    const where = { transaction: this.#transaction };
    const inner = topicPublisher(topic, { ...this.#parts, where, requireOpen: () => this.#requireOpen() });
    return { publish: (payload, options) => this.#track(inner.publish(payload, options)) };
  }

  /** Its time is over, or nobody waits for it any longer. */
  end(reason: Error): void {
    this.#end.abort(reason);
  }

  async run<T>(work: TransactionWork<T>): Promise<T> {
    const { clock, deadlineMs } = this.#parts;
    const timer = clock.setTimer(Math.max(0, deadlineMs - clock.now()), () => this.end(this.#late()));
    try {
      const result = await this.#whileOpen(async () => work(this));
      await this.#whileOpen(() => this.#published());
      timer.cancel();
      await this.#commit();
      return result;
    } catch (error) {
      timer.cancel();
      await this.#abort();
      throw error;
    } finally {
      this.#takes = false;
      this.#hasEnded();
    }
  }

  #requireOpen(): void {
    if (!this.#takes)
      throw new PulseworkError('ILLEGAL_STATE', 'the transaction has ended; publish() needs an open one');
    this.signal.throwIfAborted();
  }

  #track<T>(publishing: Promise<T>): Promise<T> {
    this.#publishing.add(publishing);
    const done = (): void => void this.#publishing.delete(publishing);
    publishing.then(done, (error: unknown) => {
      this.#failure ??= toError(error);
      done();
    });
    return publishing;
  }

  #whileOpen<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = (): void => reject(toError(this.signal.reason));
      if (this.signal.aborted) return over();
      this.signal.addEventListener('abort', over, { once: true });
      const ended = work();
      void ended.finally(() => this.signal.removeEventListener('abort', over)).catch(() => undefined);
      ended.then(resolve, reject);
    });
  }

  /** Also what the function did not wait for (T-03). */
  async #published(): Promise<void> {
    while (this.#publishing.size > 0) await Promise.allSettled(this.#publishing);
    this.#takes = false;
    if (this.#failure === undefined) return;
    const message = `the transaction was aborted, not committed, because a publish in it failed: ${this.#failure.message}`;
    throw new TransportError('TRANSACTION_ABORTED', message, { retriable: false, cause: this.#failure });
  }

  /** What gave no answer is asked again, until it is known or must be over at the broker too. */
  async #commit(): Promise<void> {
    const { calls, clock, random, deadlineMs } = this.#parts;
    for (let repeats = 0; ; repeats++) {
      try {
        await calls.run('committing a transaction', () => this.#transaction.commit());
        return;
      } catch (error) {
        if (this.#transaction.state === 'committed') return;
        const isFinal = error instanceof TransportError && !error.retriable;
        // After an earlier request that it is over does not say how.
        if (isFinal && repeats === 0) throw error;
        if (isFinal || calls.closed || clock.now() >= deadlineMs) throw unknownEnd(error);
      }
      await new Promise<void>((resolve) => clock.setTimer(REPEAT_BACKOFF(repeats, random), resolve));
    }
  }

  /** Where it fails the broker does it when its time is over. */
  async #abort(): Promise<void> {
    if (this.#transaction.state === 'committed') return;
    await this.#parts.calls.run('aborting a transaction', () => this.#transaction.abort()).catch(() => undefined);
  }

  #late(): TransportError {
    const message = `the transaction was not committed within ${this.#parts.timeoutMs} ms; nothing of it counts`;
    return new TransportError('TRANSACTION_ENDED', message, { retriable: false });
  }
}

function unknownEnd(cause: unknown): TransportError {
  const message =
    'the broker was asked to commit the transaction and gave no clear answer; whether it is committed is unknown';
  return new TransportError('TRANSACTION_OUTCOME_UNKNOWN', message, { retriable: false, cause });
}

/** The brokers have no transactions, or not for this client. What else fails says itself what to do about it. */
function hasNone(error: unknown): boolean {
  return error instanceof TransportError && WITHOUT.includes(error.code);
}
