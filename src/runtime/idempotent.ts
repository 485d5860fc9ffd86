// `idempotent()`: a message with a key that was worked on already gets the outcome of that work, its messages included. A key
// is claimed before the run; what ends a message's life (success, skip, poison) is recorded before it is settled; any other
// end frees the key. Nothing is a success that is not recorded.
import { PulseworkError, describeValue, isRefusedForGood, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { OutgoingMessage } from '../core/message.js';
import type { PayloadOf } from '../core/handler-definition.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Outcome } from '../core/outcome.js';
import { defer, isOutcome, outcomeProblem, publishRefused, success } from '../core/outcome.js';
import type { FinalOutcome, PreparedMessage } from '../core/recorded-outcome.js';
import { isFinal, outcomeOf, recordedOutcome } from '../core/recorded-outcome.js';
import type { Topic } from '../core/topic.js';
import { isTopic } from '../core/topic.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { ClaimAnswer, IdempotencyStore } from '../ports/idempotency-store.js';
import type { Logger } from '../ports/logger.js';
import { idempotencyKey } from './idempotency-key.js';
import type { Provenance } from './message-encoder.js';
import type { PortCalls } from './port-calls.js';

export interface IdempotentOptions<P = unknown> {
  /**
   * What makes two messages the same piece of work, e.g. `({ payload }) => payload.id`. 1 to 1,024 characters. It need be
   * unique only within `scope`.
   */
  readonly key: (delivery: Delivery<P>) => string;
  /**
   * Where claims and outcomes are kept: shared by all processes that may get the same key. `memoryIdempotencyStore()` is for
   * one process, and forgets at its end.
   */
  readonly store: IdempotencyStore;
  /** How long an outcome is remembered, milliseconds: a repeat that comes later is worked on again. */
  readonly ttlMs: number;
  /**
   * How long a claim outlives its process, milliseconds: the wait of a repeat after a crash. Renewed at each third of it while
   * the run goes on and its signal is not aborted. @default 30 s
   */
  readonly leaseMs?: number | undefined;
  /** Keys of different scopes never meet. Set it before a handler is renamed, to its old name. @default subscription and handler */
  readonly scope?: string | undefined;
}

/** What the runtime lends to each run. */
export interface IdempotencyContext {
  readonly clock: Clock;
  /** No call to the store hangs for ever. */
  readonly calls: Pick<PortCalls, 'run'>;
  readonly logger: Logger;
  /** Names this process among others, e.g. host and process id. */
  readonly processName: string;
  /** A number in [0, 1). */
  readonly random: () => number;
  /** Encodes one message that follows, with its id, as it will be published. @throws PulseworkError PUBLISH_REFUSED */
  readonly prepare: (message: OutgoingMessage, index: number) => Promise<PreparedMessage>;
  /** What ties such a message to the delivery that it follows from. @throws PulseworkError PUBLISH_REFUSED */
  readonly provenanceOf: (message: OutgoingMessage, index: number) => Provenance;
}

const DEFAULT_LEASE_MS = seconds(30);
/** A shorter one would be renewed all the time, and lost whenever the process pauses to collect garbage. */
const MIN_LEASE_MS = 100;

/** Claims of this process, so that no two have the same owner even where random numbers are played. */
let claims = 0;

/** What `idempotent()` takes first for the sake of the payload's type: the source of its handler. */
type TopicSource = Topic<never> | readonly Topic<never>[];

/**
 * For a handler of this topic, or of these topics: `key` gets deliveries of their payloads. The handler's source must be the same.
 * @throws ConfigurationError naming every problem.
 */
export function idempotent<const S extends TopicSource>(
  source: S,
  options: IdempotentOptions<PayloadOf<S>>,
): Idempotency<PayloadOf<S>>;
/** For a handler of any source; the payload is `unknown` unless `P` or the parameter of `key` says what it is. */
export function idempotent<P = unknown>(options: IdempotentOptions<P>): Idempotency<P>;
export function idempotent<P>(
  first: TopicSource | IdempotentOptions<P>,
  second?: IdempotentOptions<P>,
): Idempotency<P> {
  const source = isTopicSource(first) ? first : undefined;
  const options = (source === undefined ? first : second) as IdempotentOptions<P>;
  const check = new OptionChecker('idempotent');
  if (source === undefined && second !== undefined)
    check.problem(`it takes a topic or a list of topics before the options, got ${describeValue(first)}`);
  else checkIdempotentOptions(options, check);
  check.throwIfAny();
  return new Idempotency(options, source);
}

function checkIdempotentOptions(options: unknown, check: OptionChecker): void {
  if (!check.object('options', options, '{ key, store, ttlMs }')) return;
  const { key, store, ttlMs, leaseMs, scope } = options;
  check.required(options, {
    key: 'a function from a delivery to a text',
    store: 'an idempotency store such as memoryIdempotencyStore()',
    ttlMs: 'a duration in milliseconds',
  });
  check.unknownOptions(options, ['key', 'store', 'ttlMs', 'leaseMs', 'scope']);
  check.function('key', key);
  check.methods('store', store, ['claim', 'renew', 'record', 'release'], 'e.g. memoryIdempotencyStore()');
  check.durationMs('ttlMs', ttlMs, { minMs: 1 });
  check.durationMs('leaseMs', leaseMs, { minMs: MIN_LEASE_MS });
  check.nonEmptyString('scope', scope);
}

function isTopicSource(value: unknown): value is TopicSource {
  return isTopic(value) || (Array.isArray(value) && value.every(isTopic));
}

/** Made by `idempotent()`; what it does is the runtime's to call. */
export class Idempotency<P = unknown> {
  readonly #options: IdempotentOptions<P>;
  readonly #source: TopicSource | undefined;

  /** @param source what `key` was written for; undefined: any. */
  constructor(options: IdempotentOptions<P>, source?: TopicSource) {
    this.#options = options;
    this.#source = source;
  }

  /** Names of the topics that `key` was written for; undefined: any. */
  get topics(): readonly string[] | undefined {
    if (this.#source === undefined) return undefined;
    return topicsOf(this.#source).map(({ name }) => name);
  }

  /**
   * Runs `next` unless its work is done or being done elsewhere. A rejection is a failed run: what `next` threw, or
   * IDEMPOTENCY_KEY_INVALID, STORE_FAILED, STORE_FULL, STORE_FORMAT_UNKNOWN, IDEMPOTENCY_LEASE_LOST.
   * @param next the run with its error rules applied, so that what they decide is recorded too. Called at most once.
   */
  async around(
    delivery: Delivery<P>,
    next: () => Outcome | Promise<Outcome>,
    context: IdempotencyContext,
  ): Promise<Outcome> {
    const claim = new ClaimedKey(
      idempotencyKey('idempotent()', this.#options, delivery),
      delivery,
      this.#options,
      context,
    );
    const answer = await claim.take();
    if (answer.kind !== 'claimed') return answerOf(answer);
    try {
      // It may have been told to end while the key was claimed.
      delivery.signal.throwIfAborted();
      const outcome = await next();
      // What is no outcome, or a wrong one, is the caller's to report.
      if (!isOutcome(outcome) || outcomeProblem(outcome) !== undefined || !isFinal(outcome)) {
        await claim.release();
        return outcome;
      }
      return await recordIn(claim, outcome, context);
    } catch (error) {
      await claim.release();
      throw error;
    } finally {
      claim.stopRenewing();
    }
  }
}

function answerOf(answer: Exclude<ClaimAnswer, { readonly kind: 'claimed' }>): Outcome {
  if (answer.kind === 'recorded') return outcomeOf(answer.outcome);
  return defer(Math.max(1, answer.remainingMs), 'another run has claimed its idempotency key');
}

/** The outcome once it is recorded; of a lost claim what the new owner has made of it. */
async function recordIn(claim: ClaimedKey, outcome: FinalOutcome, { prepare }: IdempotencyContext): Promise<Outcome> {
  let messages: readonly PreparedMessage[] = [];
  try {
    if (outcome.kind === 'success') messages = await Promise.all(outcome.messages.map(prepare));
  } catch (error) {
    if (!isRefusedForGood(error)) throw error;
    await claim.release();
    return publishRefused(toError(error));
  }
  const recorded = recordedOutcome(outcome, messages);
  const done = outcome.kind === 'success' ? success(...messages) : outcome;
  if (await claim.record(recorded)) return done;
  const answer = await claim.take();
  if (answer.kind !== 'claimed') return answerOf(answer);
  // Whoever had taken it gave it up: what was done here still counts.
  if (await claim.record(recorded)) return done;
  throw new PulseworkError(
    'IDEMPOTENCY_LEASE_LOST',
    'the idempotency key was taken by another run twice; raise leaseMs',
  );
}

/** The claim of one run. */
class ClaimedKey {
  readonly #key: string;
  readonly #delivery: Pick<Delivery, 'handler' | 'topic' | 'originId' | 'attempt' | 'signal'>;
  readonly #options: Pick<IdempotentOptions, 'store' | 'ttlMs' | 'leaseMs'>;
  readonly #context: IdempotencyContext;
  #owner = '';
  #timer: Timer | undefined;
  #ended = false;
  /** A run that was told to end and does not must not keep its key, nor the process, for long. One for all renewals. */
  readonly #onAbort = (): void => this.#timer?.cancel();

  constructor(
    key: string,
    delivery: Pick<Delivery, 'handler' | 'topic' | 'originId' | 'attempt' | 'signal'>,
    options: Pick<IdempotentOptions, 'store' | 'ttlMs' | 'leaseMs'>,
    context: IdempotencyContext,
  ) {
    this.#key = key;
    this.#delivery = delivery;
    this.#options = options;
    this.#context = context;
  }

  /** Each time under a new owner: what an earlier one still sends changes nothing. */
  async take(): Promise<ClaimAnswer> {
    this.#owner = newOwner(this.#context);
    const answer = await this.#call('claiming', () => this.#options.store.claim(this.#key, this.#owner, this.#lease()));
    if (answer.kind === 'claimed') this.#renewLater();
    return answer;
  }

  record(outcome: Parameters<IdempotencyStore['record']>[2]): Promise<boolean> {
    // A renewal that is under way has nothing to say about a claim that ends.
    this.stopRenewing();
    const { store, ttlMs } = this.#options;
    const times = { nowMs: this.#context.clock.now(), ttlMs };
    return this.#call('recording', () => store.record(this.#key, this.#owner, outcome, times));
  }

  /** Never rejects: a claim that cannot be released ends with its lease. */
  async release(): Promise<void> {
    this.stopRenewing();
    const { store } = this.#options;
    await this.#call('releasing', () => store.release(this.#key, this.#owner)).catch(() => undefined);
  }

  stopRenewing(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#delivery.signal.removeEventListener('abort', this.#onAbort);
  }

  #renewLater(): void {
    const { signal } = this.#delivery;
    this.#ended = false;
    if (signal.aborted) return;
    signal.addEventListener('abort', this.#onAbort);
    this.#timer = this.#context.clock.setTimer(this.#lease().leaseMs / 3, () => void this.#renew());
  }

  /** A run that was told to end and does not must not keep its key for ever. */
  async #renew(): Promise<void> {
    if (this.#delivery.signal.aborted) return;
    const owner = this.#owner;
    const { store } = this.#options;
    const held = await this.#call('renewing', () => store.renew(this.#key, owner, this.#lease())).catch(() => true);
    if (this.#ended || owner !== this.#owner) return;
    if (held) this.#renewLater();
    else this.#log('warn', 'an idempotency claim was lost to another run; this one goes on and asks again at its end');
  }

  #lease(): { readonly nowMs: number; readonly leaseMs: number } {
    return { nowMs: this.#context.clock.now(), leaseMs: this.#options.leaseMs ?? DEFAULT_LEASE_MS };
  }

  /** @throws PulseworkError STORE_FAILED, or what the store threw where that has a code of its own. */
  async #call<T>(doing: string, call: () => Promise<T>): Promise<T> {
    const { store } = this.#options;
    try {
      return await this.#context.calls.run(`${doing} an idempotency key`, call);
    } catch (error) {
      const cause = toError(error);
      this.#log('error', `${doing} an idempotency key failed`, cause);
      if (cause instanceof PulseworkError && cause.code.startsWith('STORE_')) throw cause;
      const message = `idempotency store ${describeValue(store.name)}: ${doing} the key failed; the run counts as failed`;
      throw new PulseworkError('STORE_FAILED', message, { cause });
    }
  }

  #log(level: 'warn' | 'error', message: string, error?: Error): void {
    const { handler, topic, originId, attempt } = this.#delivery;
    const store = this.#options.store.name;
    this.#context.logger[level](message, { handler, topic, messageId: originId, attempt, store, error });
  }
}

function newOwner({ processName, clock, random }: IdempotencyContext): string {
  claims += 1;
  return `${processName}/${clock.now()}/${claims}/${random().toString(36).slice(2)}`;
}

function topicsOf(source: TopicSource): readonly Topic<never>[] {
  return isTopic(source) ? [source] : source;
}
