// Lets runs start no faster than something behind them can take: a token bucket by the runtime's clock. Who finds no
// token waits for one in the order of arrival.
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { TokenRate } from '../core/token-bucket.js';
import { TokenBucket } from '../core/token-bucket.js';
import type { Delivery } from '../core/delivery.js';
import type { Outcome } from '../core/outcome.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Plugin } from '../ports/plugin.js';
import type { RuntimeControl } from '../ports/runtime-view.js';

export interface RateLimitOptions {
  /** Runs that may start per second, above 0; 0.5 is one every two seconds. */
  readonly perSecond: number;
  /**
   * Runs that may start at once after a quiet time, 1 or more: in any `t` seconds at most `burst + perSecond × t` start.
   * @default a tenth of `perSecond`, at least 1: with less, timers that fire late would cost rate
   */
  readonly burst?: number | undefined;
  /** `runtime`: all handlers share one limit. `handler`: each has its own. @default 'runtime' */
  readonly by?: 'runtime' | 'handler' | undefined;
  /** Names of the handlers that are limited; one that the runtime does not have fails its start. @default all */
  readonly handlers?: readonly string[] | undefined;
  /** The plugin's name, for a runtime with several limits. @default 'rate-limit' */
  readonly name?: string | undefined;
}

const OPTION_NAMES = [
  'perSecond',
  'burst',
  'by',
  'handlers',
  'name',
] as const satisfies readonly (keyof RateLimitOptions)[];

/**
 * A run that waits holds its slot of `concurrency`, and its `timeoutMs` counts: keep `concurrency / perSecond`, the longest
 * wait in seconds, well below it, or runs fail that never began. It ends, uncounted, when a drain's deadline passes. Of a
 * batch handler each delivery is one run: with a `burst` below `maxMessages` batches start with what came through in
 * `maxWaitMs`.
 * @throws ConfigurationError on an option that is unknown or wrong.
 */
export function rateLimit(options: RateLimitOptions): Plugin {
  checkOptions(options);
  return new RateLimit(options);
}

class RateLimit implements Plugin {
  readonly name: string;
  readonly #rate: TokenRate;
  readonly #perHandler: boolean;
  readonly #handlers: ReadonlySet<string> | undefined;
  readonly #queues = new Map<string, TokenQueue>();
  #clock: Clock | undefined;

  constructor({ perSecond, burst, by, handlers, name }: RateLimitOptions) {
    this.name = name ?? 'rate-limit';
    this.#rate = { perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond / 10)) };
    this.#perHandler = by === 'handler';
    this.#handlers = handlers === undefined ? undefined : new Set(handlers);
  }

  onStart(runtime: RuntimeControl): void {
    this.#clock = runtime.clock;
    const known = runtime.health().map(({ handler }) => handler);
    const missing = [...(this.#handlers ?? [])].filter((handler) => !known.includes(handler));
    if (missing.length === 0) return;
    const check = new OptionChecker('rateLimit');
    check.problem(
      `no handler is named ${missing.map((m) => JSON.stringify(m)).join(', ')}; there are ${known.join(', ')}`,
    );
    check.throwIfAny();
  }

  aroundHandler(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
    if (this.#handlers?.has(delivery.handler) === false) return next();
    const queue = this.#queueFor(delivery.handler);
    return queue.tryTake() ? next() : queue.take(delivery.signal, this.#gaveUp(delivery)).then(next);
  }

  onClose(): void {
    for (const queue of this.#queues.values()) queue.close();
    this.#queues.clear();
  }

  /** What a wait that is cut short says: of a time limit, that the handler was not what took the time. */
  #gaveUp({ handler }: Delivery): (reason: unknown, waitedMs: number) => Error {
    return (reason, waitedMs) => {
      if (!(reason instanceof PulseworkError) || reason.code !== 'HANDLER_TIMED_OUT') return toError(reason);
      const waited = `the run waited ${waitedMs} ms for the rate limit ${JSON.stringify(this.name)}, until its time limit`;
      return new PulseworkError('HANDLER_TIMED_OUT', `handler ${JSON.stringify(handler)} was not called: ${waited}`);
    };
  }

  #queueFor(handler: string): TokenQueue {
    const key = this.#perHandler ? handler : '';
    const known = this.#queues.get(key);
    if (known !== undefined) return known;
    if (this.#clock === undefined)
      throw new PulseworkError('ILLEGAL_STATE', `plugin ${JSON.stringify(this.name)} has not started`);
    const made = new TokenQueue(this.#rate, this.#clock);
    this.#queues.set(key, made);
    return made;
  }
}

interface Waiting {
  readonly go: () => void;
  readonly giveUp: (reason: unknown) => void;
}

/** Who finds no token waits here. */
class TokenQueue {
  readonly #bucket: TokenBucket;
  readonly #clock: Clock;
  /** In the order of arrival: a Set keeps it, and one in its middle can leave. */
  readonly #waiting = new Set<Waiting>();
  #timer: Timer | undefined;

  constructor(rate: TokenRate, clock: Clock) {
    this.#bucket = new TokenBucket(rate, clock.now());
    this.#clock = clock;
  }

  /** False when somebody would have to wait: nobody goes before those that wait already. */
  tryTake(): boolean {
    return this.#waiting.size === 0 && this.#takeOne();
  }

  /** Resolves with a token in hand; rejects once the signal aborts. @param gaveUp makes the error of the signal's reason. */
  take(signal: AbortSignal, gaveUp: (reason: unknown, waitedMs: number) => Error): Promise<void> {
    const begunMs = this.#clock.now();
    return new Promise((resolve, reject) => {
      const abort = (): void => waiting.giveUp(signal.reason);
      const leave = (): void => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', abort);
      };
      const waiting: Waiting = {
        go: () => {
          leave();
          resolve();
        },
        giveUp: (reason) => {
          leave();
          reject(gaveUp(reason, this.#clock.now() - begunMs));
        },
      };
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort);
      this.#waiting.add(waiting);
      this.#setTimer();
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const reason = new PulseworkError('ALREADY_CLOSED', 'the rate limit was closed while a run waited');
    for (const { giveUp } of this.#waiting) giveUp(reason);
  }

  #letGo(): void {
    for (const { go } of this.#waiting) {
      if (!this.#takeOne()) break;
      go();
    }
    this.#setTimer();
  }

  #takeOne(): boolean {
    const nowMs = this.#clock.now();
    if (this.#bucket.available(nowMs) === 0) return false;
    this.#bucket.take(nowMs);
    return true;
  }

  /** One timer, for the next token, and only while somebody waits. */
  #setTimer(): void {
    if (this.#waiting.size === 0 || this.#timer !== undefined) return;
    this.#timer = this.#clock.setTimer(this.#bucket.untilNextMs(this.#clock.now()), () => {
      this.#timer = undefined;
      this.#letGo();
    });
  }
}

function checkOptions(options: RateLimitOptions): void {
  const check = new OptionChecker('rateLimit');
  if (check.object('options', options, '{ perSecond: 10 }')) {
    check.required(options, { perSecond: 'a number above 0' });
    check.unknownOptions(options, OPTION_NAMES);
    checkNumber('perSecond', options.perSecond, check, { least: Number.MIN_VALUE, rule: 'a finite number above 0' });
    checkNumber('burst', options.burst, check, { least: 1, rule: 'a finite number of 1 or more' });
    check.oneOf('by', options.by, ['runtime', 'handler']);
    check.nonEmptyString('name', options.name);
    const { handlers } = options as { readonly handlers?: unknown };
    if (handlers !== undefined && !isListOfNames(handlers))
      check.problem(`"handlers" must be a list of at least one handler name, got ${describeValue(handlers)}`);
  }
  check.throwIfAny();
}

function checkNumber(
  name: string,
  value: unknown,
  check: OptionChecker,
  { least, rule }: { readonly least: number; readonly rule: string },
): void {
  if (value === undefined || (typeof value === 'number' && value >= least && value < Infinity)) return;
  check.problem(`${JSON.stringify(name)} must be ${rule}, got ${describeValue(value)}`);
}

function isListOfNames(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string' && name !== '');
}
