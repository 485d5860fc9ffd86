// `effects()`: what a handler writes to a database, the messages that follow and the record that it was done are committed
// together, in one transaction of that database. A repeat finds the record and is only acknowledged, so the effect is there
// once, whatever fails in between.
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { PayloadOf } from '../core/handler-definition.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Outcome, Skip, Success } from '../core/outcome.js';
import { defer, dependencyDown, isOutcome, outcomeProblem, retry } from '../core/outcome.js';
import type { RecordedOutcome } from '../core/recorded-outcome.js';
import { outcomeOf, recordedOutcome } from '../core/recorded-outcome.js';
import type { Topic } from '../core/topic.js';
import { isTopic } from '../core/topic.js';
import type { EffectAnswer, EffectStore, EffectTransaction } from '../ports/effect-store.js';
import type { HandlerRun } from './handler-run.js';
import type { IdempotencyContext } from './idempotent.js';
import { idempotencyKey } from './idempotency-key.js';
import { enterOrigin, leaveOrigin } from './outbox/transaction-origins.js';

export interface EffectsOptions<Tx extends object, P = unknown> {
  /** `postgresEffects({ pool })` or `sqliteEffects({ database })`: where the handler writes. */
  readonly store: EffectStore<Tx>;
  /**
   * How long it is remembered that a message was done, milliseconds: a repeat that comes later is done again. Longer than any
   * message may wait, its dead letter sent back by hand included.
   */
  readonly ttlMs: number;
  /** What makes two messages the same piece of work, 1 to 1,024 characters. @default the message itself, on every attempt */
  readonly key?: ((delivery: Delivery<P>) => string) | undefined;
  /** Keys of different scopes never meet. Set it before a handler is renamed, to its old name. @default subscription and handler */
  readonly scope?: string | undefined;
}

/** What the runtime lends to each run. */
export interface EffectsContext extends IdempotencyContext {
  /** Its time limit is the handler's: it counts neither while the database begins nor while it commits. */
  readonly run: Pick<HandlerRun, 'interruption' | 'limit'>;
  /** What the rules of the handler make of an error; undefined where none is for it. */
  readonly ruled: (error: Error) => Outcome | undefined;
}

/** Another run for the same key is usually over within it; afterwards the message waits without a connection. */
const LOCK_WAIT_MS = seconds(5);
/** Until it is asked what became of a commit without an answer. */
const COMMIT_AGAIN_MS = seconds(1);

type TopicSource = Topic<never> | readonly Topic<never>[];

/**
 * For a handler of this topic, or of these topics: `key` gets deliveries of their payloads.
 * @throws ConfigurationError naming every problem.
 */
export function effects<const S extends TopicSource, Tx extends object>(
  source: S,
  options: EffectsOptions<Tx, PayloadOf<S>>,
): Effects<Tx, PayloadOf<S>>;
/** For a handler of any source. */
export function effects<Tx extends object, P = unknown>(options: EffectsOptions<Tx, P>): Effects<Tx, P>;
export function effects<Tx extends object, P>(
  first: TopicSource | EffectsOptions<Tx, P>,
  second?: EffectsOptions<Tx, P>,
): Effects<Tx, P> {
  const source = isTopic(first) ? [first] : Array.isArray(first) ? (first as readonly Topic<never>[]) : undefined;
  const options = (source === undefined ? first : second) as EffectsOptions<Tx, P>;
  const check = new OptionChecker('effects');
  if (check.object('options', options, '{ store, ttlMs }')) checkOptions(options, check);
  check.throwIfAny();
  return new Effects(
    options,
    source?.map(({ name }) => name),
  );
}

function checkOptions(options: Record<string, unknown>, check: OptionChecker): void {
  const { store, ttlMs, key, scope } = options;
  check.required(options, { store: 'postgresEffects() or sqliteEffects()', ttlMs: 'a duration in milliseconds' });
  check.unknownOptions(options, ['store', 'ttlMs', 'key', 'scope']);
  check.methods('store', store, ['open', 'begin'], 'e.g. postgresEffects()');
  check.durationMs('ttlMs', ttlMs, { minMs: 1 });
  check.function('key', key);
  check.nonEmptyString('scope', scope);
}

/** Made by `effects()`, for one handler or several. */
export class Effects<Tx extends object = object, P = unknown> {
  /** Names of the topics that `key` was written for; undefined: any. */
  readonly topics: readonly string[] | undefined;
  readonly #options: EffectsOptions<Tx, P>;
  readonly #running = new WeakMap<object, Tx>();

  constructor(options: EffectsOptions<Tx, P>, topics?: readonly string[]) {
    this.#options = options;
    this.topics = topics;
  }

  /** For the runtime, at its start. */
  get store(): Pick<EffectStore<Tx>, 'name' | 'open'> {
    return this.#options.store;
  }

  /**
   * The transaction for the delivery that a handler is running for: write in it, `outbox.add(tx, ...)` in it, and neither
   * commit nor roll it back. @throws PulseworkError ILLEGAL_STATE outside of the run.
   */
  transaction(delivery: Delivery<P>): Tx {
    const tx = this.#running.get(delivery);
    if (tx !== undefined) return tx;
    throw new PulseworkError(
      'ILLEGAL_STATE',
      'effects: there is no transaction for this delivery; ask inside the handler that has these effects, with the delivery that it was given',
    );
  }

  /**
   * Runs `next` in a transaction, or answers with what was recorded. Where the database cannot begin one, the handler's rules
   * decide, or it is down: nothing has failed. A rejection is a failed run, of which nothing is done: what `next` threw,
   * IDEMPOTENCY_KEY_INVALID, HANDLER_TIMED_OUT, STORE_*.
   */
  async around(
    delivery: Delivery<P>,
    next: () => Outcome | Promise<Outcome>,
    context: EffectsContext,
  ): Promise<Outcome> {
    const key = this.#keyOf(delivery);
    context.run.limit(false);
    const answer = await this.#begin(key, context).catch(toError);
    if (answer instanceof Error) return this.#notBegun(answer, context);
    if (answer.kind === 'recorded') return this.#recorded(answer.outcome, context);
    if (answer.kind === 'busy')
      return defer(Math.max(1, answer.remainingMs), 'another run has its work in a transaction that is open');
    const { transaction } = answer;
    context.run.limit(true);
    try {
      const outcome = await this.#within(transaction, delivery, next, context);
      return await this.#end(transaction, outcome, context);
    } catch (error) {
      await this.#rollBack(transaction, context);
      throw error;
    }
  }

  #keyOf(delivery: Delivery<P>): string {
    const { scope, key = ({ topic, originId }) => `${topic} ${originId}` } = this.#options;
    return idempotencyKey('effects()', { key, scope }, delivery);
  }

  #recorded(outcome: RecordedOutcome, context: EffectsContext): Outcome {
    try {
      return outcomeOf(outcome);
    } catch (error) {
      // A newer version wrote it: the message is done, whatever it says.
      return this.#notBegun(toError(error), context);
    }
  }

  #notBegun(error: Error, { run, ruled }: EffectsContext): Outcome {
    if (run.interruption !== undefined) throw run.interruption;
    return ruled(error) ?? dependencyDown(this.#options.store.name, { reason: error });
  }

  #begin(key: string, context: EffectsContext): Promise<EffectAnswer<Tx>> {
    const { store, ttlMs } = this.#options;
    let late: Promise<EffectAnswer<Tx>> | undefined;
    const begin = (): Promise<EffectAnswer<Tx>> => (late = store.begin(key, { ttlMs, waitMs: LOCK_WAIT_MS }));
    return this.#call('beginning a transaction', begin, context).catch(async (error: unknown) => {
      // One that begins after its time limit belongs to nobody.
      void late?.then(rollBackLate).catch(() => undefined);
      throw error;
    });
  }

  async #within(
    { tx }: EffectTransaction<Tx>,
    delivery: Delivery<P>,
    next: () => Outcome | Promise<Outcome>,
    context: EffectsContext,
  ): Promise<Outcome> {
    let messages = 0;
    enterOrigin(tx, { provenanceOf: (message) => context.provenanceOf(message, messages++) });
    this.#running.set(delivery, tx);
    try {
      // It may have been told to end while it waited for the transaction.
      delivery.signal.throwIfAborted();
      return await next();
    } finally {
      this.#running.delete(delivery);
      leaveOrigin(tx);
    }
  }

  /** Success and skip are committed; of everything else nothing stays. */
  async #end(transaction: EffectTransaction<Tx>, outcome: Outcome, context: EffectsContext): Promise<Outcome> {
    // What is no outcome, or a wrong one, is the caller's to report.
    const isRight = isOutcome(outcome) && outcomeProblem(outcome) === undefined;
    if (!isRight || (outcome.kind !== 'success' && outcome.kind !== 'skip')) {
      await this.#rollBack(transaction, context);
      return outcome;
    }
    if (outcome.kind === 'success' && outcome.messages.length > 0) {
      await this.#rollBack(transaction, context);
      return retry(outcomeRefused());
    }
    const { run } = context;
    // It counts as failed, so nothing of it may stay.
    if (hasTimedOut(run.interruption)) throw run.interruption;
    // From here on it is the database that takes its time.
    run.limit(false);
    return this.#commit(transaction, outcome, context);
  }

  /** @throws PulseworkError STORE_*: nothing is committed. */
  async #commit(
    transaction: EffectTransaction<Tx>,
    outcome: Success | Skip,
    context: EffectsContext,
  ): Promise<Outcome> {
    try {
      await this.#call('committing', () => transaction.commit(recordedOutcome(outcome, [])), context);
      return outcome;
    } catch (error) {
      if (!(error instanceof PulseworkError && error.code === 'STORE_COMMIT_UNKNOWN')) throw error;
      await this.#rollBack(transaction, context);
      const { store } = this.#options;
      context.logger.warn(
        'a run has ended, and whether its effects were committed is unknown; the message comes again',
        {
          store: store.name,
          againInMs: COMMIT_AGAIN_MS,
          error,
        },
      );
      return defer(COMMIT_AGAIN_MS, error);
    }
  }

  /** Also where the runtime has closed meanwhile and lets no more calls through: connections are given back. */
  async #rollBack(transaction: EffectTransaction<Tx>, { calls }: EffectsContext): Promise<void> {
    const ended = transaction.rollback();
    await calls.run('rolling back the effects of a handler', () => ended).catch(() => undefined);
  }

  /** @throws PulseworkError STORE_*: a code of the store's own, or what no clear answer means for this call. */
  async #call<T>(
    doing: 'beginning a transaction' | 'committing',
    call: () => Promise<T>,
    { calls }: EffectsContext,
  ): Promise<T> {
    const { store } = this.#options;
    try {
      return await calls.run(`${doing} for the effects of a handler`, call);
    } catch (error) {
      const cause = toError(error);
      if (cause instanceof PulseworkError && cause.code.startsWith('STORE_')) throw cause;
      const subject = `effect store ${describeValue(store.name)}: ${doing}`;
      throw doing === 'committing'
        ? new PulseworkError('STORE_COMMIT_UNKNOWN', `${subject} gave no clear answer; the repeat finds out`, { cause })
        : new PulseworkError('STORE_FAILED', `${subject} failed; the handler did not run`, { cause });
    }
  }
}

function hasTimedOut(interruption: Error | undefined): interruption is PulseworkError {
  return interruption instanceof PulseworkError && interruption.code === 'HANDLER_TIMED_OUT';
}

async function rollBackLate(answer: EffectAnswer<object>): Promise<void> {
  if (answer.kind === 'begun') await answer.transaction.rollback();
}

function outcomeRefused(): PulseworkError {
  return new PulseworkError(
    'EFFECTS_OUTCOME_REFUSED',
    'a handler with "effects" must return success() without messages: they would not be committed with its effects; add them by outbox.add(transaction, ...)',
  );
}
