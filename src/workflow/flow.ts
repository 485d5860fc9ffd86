// What a workflow's method can ask for. Everything it awaits must come from here: that is what makes it go on after a crash.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { MessageOptions } from '../core/message.js';
import type { Defer, DependencyDown, Outcome, Poison, Retry, RetryAfter } from '../core/outcome.js';
import type { RedeliveryPolicyOptions } from '../core/redelivery-policy.js';
import type { Topic } from '../core/topic.js';
import type { WorkflowInput, WorkflowReference, WorkflowResult } from './definition.js';
import type { WorkflowError } from './workflow-errors.js';

/** What a step may return instead of a value: how its failure is to be taken. */
export type StepOutcome = Retry | RetryAfter | Defer | Poison | DependencyDown;

export interface StepContext {
  /** The same in every attempt of this step, and of no other step: for services that recognise a repeated request. */
  readonly idempotencyKey: string;
  /** 1 in the first attempt, one more in each further one. */
  readonly attempt: number;
  /** Aborts when the workflow is cancelled or terminated, at `timeoutMs`, when the lease is lost and past a drain's deadline. */
  readonly signal: AbortSignal;
}

export interface StepPolicy {
  /** How often and how fast it is tried again; fields that are absent have the defaults. @default 10 attempts, 1 s to 10 min */
  readonly redelivery?: RedeliveryPolicyOptions | undefined;
  /**
   * Milliseconds one attempt may take: then its signal aborts and it counts as failed, once it has ended or has gone on for
   * as long again. @default none
   */
  readonly timeoutMs?: number | undefined;
}

export interface Compensation<Done> extends StepPolicy {
  readonly run: (done: Done, context: StepContext) => unknown;
}

/** A compensation that a handler does. */
export interface RemoteCompensation<Done> extends StepPolicy {
  readonly topic: Topic<never> | string;
  /** Makes the payload. It must do nothing else: it is called for each attempt. */
  readonly input: (done: Done) => unknown;
  /** @default the key is the workflow's id */
  readonly message?: MessageOptions | undefined;
}

export interface StepOptions<Done> extends StepPolicy {
  /**
   * Undoes it, given its result, should the workflow fail or be cancelled later. Compensations run in the reverse order of
   * results, each as a step of its own with the default policy, or that of `{ run, redelivery, timeoutMs }`; with `{ topic, input }`
   * a handler does it. @default none
   */
  readonly compensate?:
    | ((done: Done, context: StepContext) => unknown)
    | Compensation<Done>
    | RemoteCompensation<Done>
    | undefined;
}

/** Work of a step that a handler does, in this process or any other. */
export interface RemoteStep<In, S extends StandardSchemaV1 | undefined = undefined> {
  /** Where the handler takes it from. Its answer is `stepResult(delivery, value)` or `stepFailure(delivery, reason)`. */
  readonly topic: Topic<In> | string;
  /** The payload. */
  readonly input: NoInfer<In>;
  /** What the result must be: one that does not match it is a failed attempt. @default unchecked */
  readonly result?: S;
  /** @default the key is the workflow's id */
  readonly message?: MessageOptions | undefined;
}

export interface SignalOptions<S extends StandardSchemaV1 | undefined> {
  /** A signal that does not match it is dropped, with a warning, and waited on for. @default that of the definition, else unchecked */
  readonly payload?: S;
  /** Milliseconds after which it is waited for no longer: the result is then `undefined`. @default none */
  readonly timeoutMs?: number | undefined;
}

export interface ChildOptions {
  /** @default the parent's id, its run and the number of the command */
  readonly id?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

export interface FailureOptions {
  readonly cause?: unknown;
}

export type SignalPayload<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : unknown;

/** Which one of a race came first, and its value. */
export type RaceResult<Entries extends Readonly<Record<string, PromiseLike<unknown>>>> = {
  readonly [Name in keyof Entries]: { readonly winner: Name; readonly value: Awaited<Entries[Name]> };
}[keyof Entries];

/**
 * Names of steps, sleeps and children are for people and for the check that the code still fits the journal: they need not
 * be unique. Call these only from the method itself, and await nothing else: every activation runs the method again from its
 * start over what is recorded, and so it must ask for the same things in the same order each time.
 */
export interface Flow {
  /** Of this workflow. */
  readonly id: string;
  /** 1, and one more after each `continueAsNew`. */
  readonly run: number;
  /** Aborted once a cancellation has reached the method. */
  readonly cancelled: AbortSignal;

  /**
   * Any work. It runs at least once, and never again once its result is recorded. The result must be plain data that survives JSON.
   * What it throws is tried again by its policy; in the end it rejects with WORKFLOW_STEP_FAILED.
   */
  step<R>(
    name: string,
    run: (context: StepContext) => R,
    options?: StepOptions<Exclude<Awaited<R>, Outcome>>,
  ): Promise<Exclude<Awaited<R>, Outcome>>;
  /**
   * Work for a handler: sent as a message with each attempt, always with the same idempotency key, and waited for as long as
   * `timeoutMs` says, without a process. The first result counts, whichever attempt it is of. A cancellation does not reach the
   * handler: the answer to what was sent is waited for, so that what was done is known.
   */
  step<In, S extends StandardSchemaV1 | undefined = undefined>(
    name: string,
    work: RemoteStep<In, S>,
    options?: StepOptions<SignalPayload<S>>,
  ): Promise<SignalPayload<S>>;
  /** @param until milliseconds from now, or a point in time. Never early. */
  sleep(name: string, until: number | Date): Promise<void>;
  /** The next signal of that name that was not consumed yet, in the order of their arrival; `undefined` after `timeoutMs`. */
  signal<S extends StandardSchemaV1 | undefined = undefined>(
    name: string,
    options: SignalOptions<S> & { readonly timeoutMs: number },
  ): Promise<SignalPayload<S> | undefined>;
  signal<S extends StandardSchemaV1 | undefined = undefined>(
    name: string,
    options?: SignalOptions<S>,
  ): Promise<SignalPayload<S>>;
  /**
   * Starts another workflow and waits for its end. Rejects with WORKFLOW_FAILED unless it completes. A cancellation or a
   * failure of the parent cancels children that are waited for.
   */
  child<W extends WorkflowReference>(
    workflow: W,
    input: WorkflowInput<W>,
    options?: ChildOptions,
  ): Promise<WorkflowResult<W>>;
  /** Sends a message, at least once and always with the same `pulsework-message-id`. Resolves when it is recorded. */
  publish<In>(topic: Topic<In> | string, payload: In, options?: MessageOptions): Promise<void>;

  /** All of them; rejects with the first that fails. */
  all<const T extends readonly unknown[]>(these: T): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }>;
  /**
   * The first to have a result or to fail. Of the others, sleeps and signals are waited for no longer (a signal that comes
   * later is for whoever asks next); steps and children go on, and the workflow does not end before them.
   */
  race<Entries extends Readonly<Record<string, PromiseLike<unknown>>>>(entries: Entries): Promise<RaceResult<Entries>>;

  /** Epoch milliseconds of the last thing that happened to this workflow: the same in each replay. */
  now(): number;
  /** A number in [0, 1), the same in each replay. */
  random(): number;
  /** A version 4 UUID, the same in each replay. */
  uuid(): string;

  /** What `workflows.query` asks for by that name. Register it before the first await. */
  query(name: string, answer: () => unknown): void;
  /** True in workflows that come here for the first time; false where an older version of the code has gone past it. */
  patched(change: string): boolean;
  /** To throw: the workflow fails with it, and what was done is compensated. */
  failure(message: string, options?: FailureOptions): WorkflowError;
  /**
   * Begins anew with another input and an empty journal; signals that nobody has consumed stay. Never resolves: `return` it.
   * Compensations of this run are not taken along.
   */
  continueAsNew(input: unknown): Promise<never>;
}
