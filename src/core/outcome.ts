// What a handler says about a delivery. The runtime decides what follows (settlement.ts); nothing here acts.
// The union is closed and branded: an object that only looks like an Outcome is refused by compiler and runtime.
import type { Backoff } from './backoff.js';
import type { DeadLetterCause } from './dead-letter.js';
import { describeValue, isErrorClass, toError } from './errors.js';
import { errorMessage, errorName } from './failure-report.js';
import type { OutgoingMessage } from './message.js';
import { MAX_DURATION_MS, OptionChecker } from './options.js';
import { backoffHint } from './redelivery-policy.js';
import { isTopic } from './topic.js';

const BRAND: unique symbol = Symbol.for('pulsework.outcome') as never;
/** What was wrong with the call that made an outcome. The call itself never throws: it may stand in a `catch`. */
const PROBLEM: unique symbol = Symbol.for('pulsework.outcome-problem') as never;

interface Branded {
  readonly [BRAND]: true;
  readonly [PROBLEM]?: string;
}

/** Why something did not succeed, for people: one line, and the error it came from where there was one. */
export interface Failure {
  readonly reason: string;
  readonly error?: Error | undefined;
}

/** Done; `messages` follow from it and are published and confirmed before the acknowledgement. */
export interface Success extends Branded {
  readonly kind: 'success';
  readonly messages: readonly OutgoingMessage[];
  /** What was asked for is not done, and may be asked for again: `idempotent` does not keep it. */
  readonly askedAgain?: boolean | undefined;
}
/** Not for this handler: acknowledged, counted and logged apart. */
export interface Skip extends Branded {
  readonly kind: 'skip';
  readonly failure: Failure;
}
/** Failed, may work later: the policy decides when. Spends an attempt. */
export interface Retry extends Branded {
  readonly kind: 'retry';
  readonly failure: Failure;
  /** The dead letter's cause should this be the last attempt; `redeliveries-exhausted` unless the runtime knows better. */
  readonly cause: DeadLetterCause;
  /** In place of the policy's, for this failure. */
  readonly backoff: Backoff | undefined;
}
/** Failed, and known when to try again: `delayMs` is a floor. Spends an attempt. */
export interface RetryAfter extends Branded {
  readonly kind: 'retry-after';
  readonly delayMs: number;
  readonly failure: Failure;
}
/** Too early; nothing failed. Kept and run again in place, no attempt spent. */
export interface Defer extends Branded {
  readonly kind: 'defer';
  /** Milliseconds from the end of the run, or a point in time. */
  readonly until: number | Date;
  readonly failure: Failure;
}
/** Will never work: dead letter now. */
export interface Poison extends Branded {
  readonly kind: 'poison';
  readonly failure: Failure;
  readonly cause: DeadLetterCause;
}
/** Something this handler needs is down; not the message's fault. Kept as the probe, the subscription pauses. */
export interface DependencyDown extends Branded {
  readonly kind: 'dependency-down';
  readonly dependency: string;
  readonly retryAfterMs: number | undefined;
  /** `key`: only this delivery's key (under `ordering`) waits. */
  readonly scope: 'subscription' | 'key';
  readonly failure: Failure;
}
/** Stop the runtime: the delivery stays unsettled, the runtime drains and `closed` rejects. */
export interface Fatal extends Branded {
  readonly kind: 'fatal';
  readonly failure: Failure;
}

export type Outcome = Success | Skip | Retry | RetryAfter | Defer | Poison | DependencyDown | Fatal;
export type OutcomeKind = Outcome['kind'];

const DONE: Success = { [BRAND]: true, kind: 'success', messages: [] };

/** Done. Messages made by `topic.message(...)` are published, their receipts awaited, then the delivery is acknowledged. */
export function success(...messages: OutgoingMessage[]): Success {
  return messages.length === 0 ? DONE : { [BRAND]: true, kind: 'success', messages };
}

/** Nothing to do for this handler: acknowledged without a follow-up. */
export function skip(reason: string): Skip {
  return { [BRAND]: true, kind: 'skip', failure: failureOf(reason) };
}

export interface RetryOptions {
  /**
   * In place of the redelivery policy's: with `onError: [on(GatewayBusy, (error) => retry(error, { backoff }))]` a class of
   * errors has a backoff of its own. @default the policy's
   */
  readonly backoff?: Backoff | undefined;
}

/** Failed, may work later. The handler's redelivery policy decides when; after `maxDeliveries` it is a dead letter. */
export function retry(reason?: string | Error, options?: RetryOptions): Retry {
  const made = retryWith(failureOf(reason ?? 'retry requested'), 'redeliveries-exhausted', options?.backoff);
  return withProblem(made, optionsProblem('retry()', options, ['backoff']));
}

function retryWith(failure: Failure, cause: DeadLetterCause, backoff?: Backoff): Retry {
  return { [BRAND]: true, kind: 'retry', failure, cause, backoff };
}

/** Failed, and the handler knows when it may work. @param delayMs milliseconds, 0 or more. */
export function retryAfter(delayMs: number, reason?: string | Error): RetryAfter {
  return { [BRAND]: true, kind: 'retry-after', delayMs, failure: failureOf(reason ?? 'retry requested') };
}

/** Too early: run again after `until` (milliseconds, or a Date). Spends no attempt. */
export function defer(until: number | Date, reason?: string | Error): Defer {
  return { [BRAND]: true, kind: 'defer', until, failure: failureOf(reason ?? 'deferred') };
}

/** Will never work, however often it is tried: a dead letter, now. */
export function poison(reason: string | Error): Poison {
  return { [BRAND]: true, kind: 'poison', failure: failureOf(reason), cause: 'poison' };
}

export interface DependencyDownOptions {
  /** Milliseconds until it is tried first; then doubling up to a minute. @default 1 second */
  readonly retryAfterMs?: number | undefined;
  /** @default that it is down */
  readonly reason?: string | Error | undefined;
  /**
   * `key`: the dependency is down for this key alone (one customer's endpoint): only its lane waits. Needs `ordering`.
   * @default 'subscription'
   */
  readonly scope?: 'subscription' | 'key' | undefined;
}

/** `dependency` cannot be reached. The subscription pauses and this delivery is tried again until it can. */
export function dependencyDown(dependency: string, options?: DependencyDownOptions): DependencyDown {
  const { retryAfterMs, scope = 'subscription', reason = `${dependency} is down` } = options ?? {};
  const failure = failureOf(reason);
  const made: DependencyDown = { [BRAND]: true, kind: 'dependency-down', dependency, retryAfterMs, scope, failure };
  return withProblem(made, optionsProblem('dependencyDown()', options, ['retryAfterMs', 'reason', 'scope']));
}

function optionsProblem(call: string, options: unknown, known: readonly string[]): string | undefined {
  if (options === undefined) return undefined;
  const check = new OptionChecker(call);
  if (check.object('options', options, `{ ${known.join(', ')} }`)) check.unknownOptions(options, known);
  return check.problems.length === 0 ? undefined : check.problems.join('; ');
}

function withProblem<O extends Branded>(made: O, problem: string | undefined): O {
  return problem === undefined ? made : { ...made, [PROBLEM]: problem };
}

/** Stop everything: the runtime drains, `runtime.closed` rejects with this reason. The delivery stays in the subscription. */
export function fatal(reason: string | Error): Fatal {
  return { [BRAND]: true, kind: 'fatal', failure: failureOf(reason) };
}

const NO_REASON: Failure = { reason: 'no reason given' };

/** A payload that cannot be read: never acknowledged away, always a dead letter. @internal */
export function undecodable(error: Error): Poison {
  return { [BRAND]: true, kind: 'poison', failure: failureOf(error), cause: 'undecodable' };
}

/** A message that ended its process each time it ran alone. @internal */
export function processDied(attempts: number, deaths: number): Poison {
  const reason = `the process died in ${deaths} of its ${attempts} deliveries, while nothing else ran`;
  return { [BRAND]: true, kind: 'poison', failure: failureOf(reason), cause: 'process-died' };
}

/** A run whose follow-up message was refused for good: a failed run with its own cause. @internal */
export function publishRefused(error: Error): Retry {
  return retryWith(failureOf(error), 'publish-refused');
}

/** Whether a value was made by one of the functions above (also by another copy of this package). */
export function isOutcome(value: unknown): value is Outcome {
  return typeof value === 'object' && value !== null && (value as Partial<Branded>)[BRAND] === true;
}

/** What is wrong with an outcome's own values, or undefined. A handler in plain JavaScript can get them wrong. */
export function outcomeProblem(outcome: Outcome): string | undefined {
  const { messages, failure } = outcome as { messages?: unknown; failure?: unknown };
  const whole = outcome.kind === 'success' ? Array.isArray(messages) : typeof failure === 'object' && failure !== null;
  return whole ? (outcome[PROBLEM] ?? valueProblem(outcome)) : madeWrong(outcome);
}

function valueProblem(outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case 'success':
      return outcome.messages.every(isMessage)
        ? undefined
        : 'success() takes messages made by topic.message(...), one by one, not as a list';
    case 'retry-after':
      return isDelay(outcome.delayMs)
        ? undefined
        : `retryAfter() takes milliseconds of 0 or more, such as seconds(30), got ${describeValue(outcome.delayMs)}`;
    case 'defer':
      return isDue(outcome.until)
        ? undefined
        : `defer() takes milliseconds of 0 or more or a valid Date, got ${describeValue(outcome.until)}`;
    case 'dependency-down':
      return dependencyDownProblem(outcome);
    case 'retry':
      return outcome.backoff === undefined || typeof outcome.backoff === 'function'
        ? undefined
        : `retry() takes a "backoff" such as ${backoffHint(outcome.backoff)}, got ${describeValue(outcome.backoff)}`;
    case 'skip':
    case 'poison':
    case 'fatal':
      return undefined;
    default:
      return madeWrong(outcome);
  }
}

function dependencyDownProblem({ dependency, retryAfterMs = 0, scope }: DependencyDown): string | undefined {
  if (typeof (dependency as unknown) !== 'string' || dependency.trim() === '')
    return `dependencyDown() takes the name of what is down, got ${describeValue(dependency)}`;
  if (!isDelay(retryAfterMs))
    return `dependencyDown() takes "retryAfterMs" of 0 or more, got ${describeValue(retryAfterMs)}`;
  if (['subscription', 'key'].includes(scope)) return undefined;
  return `dependencyDown() takes "scope" of subscription or key, got ${describeValue(scope)}`;
}

function madeWrong({ kind }: { readonly kind?: unknown }): string {
  return `an outcome is made by success(), retry() and the like, got one of kind ${describeValue(kind)}`;
}

function isMessage(value: unknown): boolean {
  return isTopic((value as Partial<OutgoingMessage> | null | undefined)?.topic);
}

function isDue(until: number | Date): boolean {
  return until instanceof Date ? !Number.isNaN(until.getTime()) : isDelay(until);
}

function isDelay(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= MAX_DURATION_MS;
}

/** A reason and, where an error was given, the error. Nothing, or an empty text, is a reason that was not given. */
export function failureOf(reason: string | Error): Failure {
  if ((reason as unknown) === undefined || (reason as unknown) === null || reason === '') return NO_REASON;
  if (typeof reason === 'string') return { reason };
  const error = toError(reason);
  return { reason: errorMessage(error) || errorName(error), error };
}

/** What `on()` returns: a rule of a handler's `onError` list. */
export interface ErrorRule {
  readonly errorClass: abstract new (...args: never[]) => Error;
  readonly outcome: (error: never) => Outcome;
}

/**
 * Errors of `errorClass` (subclasses included) become the outcome that `outcome` gives. The first matching rule wins.
 * @throws ConfigurationError when the first is no error class or the second no function.
 */
export function on<E extends Error>(
  errorClass: abstract new (...args: never[]) => E,
  outcome: (error: E) => Outcome,
): ErrorRule {
  const check = new OptionChecker('on()');
  if (!isErrorClass(errorClass)) {
    check.problem(`it takes an error class first, got ${describeValue(errorClass)}`);
  }
  const isRule = typeof (outcome as unknown) === 'function' && !isErrorClass(outcome);
  if (!isRule)
    check.problem(
      `it takes a function from the error to an outcome second, such as poison, got ${describeValue(outcome)}`,
    );
  check.throwIfAny();
  return { errorClass, outcome };
}
