// How an attempt of a step ended, and what follows from it: decided by values, done by the activation.
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import { minutes, seconds } from '../core/options.js';
import type { Outcome } from '../core/outcome.js';
import { isOutcome, outcomeProblem } from '../core/outcome.js';
import { redeliveryDelayMs } from '../core/redelivery-policy.js';
import type { JournalEntry } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { Command } from './command.js';
import { commandText } from './command.js';
import { plainValue } from './plain-value.js';

/** `cut`: it was told to end and did so without a result: whether it has done anything is unknown. */
export type AttemptEnd =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timed-out'; readonly error: Error }
  | { readonly kind: 'cut' };

/** The wait for something that is down: doubling, at most this, as for deliveries. */
const MAX_OUTAGE_WAIT_MS = seconds(60);

/** Between attempts that leave nothing behind: doubling, at most this. What ends its processes shall not end them all at once. */
const MAX_LOST_WAIT_MS = minutes(10);

export interface StepFacts {
  readonly nowMs: number;
  readonly random: () => number;
}

/** The entry that an attempt leaves; undefined for one that leaves none and stays in doubt. */
export function entryOf(command: Command, end: AttemptEnd, facts: StepFacts): JournalEntry | undefined {
  const { nowMs: atMs } = facts;
  switch (end.kind) {
    case 'cut':
      return undefined;
    case 'timed-out':
    case 'threw':
      return attemptFailed(command, end.error, facts, undefined);
    case 'returned':
      if (isOutcome(end.value)) return ofOutcome(command, end.value, facts);
      try {
        const value = command.kind === 'compensate' ? undefined : plainValue(end.value, resultText(command));
        return { kind: 'completed', at: command.at, atMs, ...(value !== undefined && { value }) };
      } catch (error) {
        // It would be the same each time, and what it did is done.
        return gaveUp(command, error, atMs);
      }
  }
}

function resultText(command: Command): string {
  return `the result of ${commandText(command)}`;
}

function ofOutcome(command: Command, outcome: Outcome, facts: StepFacts): JournalEntry {
  const problem = outcomeProblem(outcome);
  if (problem !== undefined) return gaveUp(command, new PulseworkError('WORKFLOW_VALUE_INVALID', problem), facts.nowMs);
  switch (outcome.kind) {
    case 'retry':
      return attemptFailed(command, failureOf(outcome), facts, undefined, outcome.backoff);
    case 'retry-after':
      return attemptFailed(command, failureOf(outcome), facts, outcome.delayMs);
    case 'poison':
      return gaveUp(command, failureOf(outcome), facts.nowMs);
    case 'defer': {
      const { until } = outcome;
      return again(command, failureOf(outcome), facts, until instanceof Date ? until.getTime() : facts.nowMs + until);
    }
    case 'dependency-down': {
      const waitMs = (outcome.retryAfterMs ?? seconds(1)) * 2 ** command.unspent;
      const longest = Math.max(MAX_OUTAGE_WAIT_MS, outcome.retryAfterMs ?? 0);
      return again(command, failureOf(outcome), facts, facts.nowMs + Math.min(waitMs, longest));
    }
    case 'success':
    case 'skip':
    case 'fatal': {
      const rule = `${commandText(command)} returned ${outcome.kind}(), which is for handlers; return a value, or retry(), retryAfter(), defer(), poison() or dependencyDown()`;
      return gaveUp(command, new PulseworkError('WORKFLOW_VALUE_INVALID', rule), facts.nowMs);
    }
  }
}

function failureOf({ failure }: Exclude<Outcome, { kind: 'success' }>): Error {
  return failure.error ?? new Error(failure.reason);
}

/** One attempt less; the last one gives up. */
export function attemptFailed(
  command: Command,
  error: unknown,
  { nowMs, random }: StepFacts,
  delayMs: number | undefined,
  backoff = command.step?.policy.backoff,
): JournalEntry {
  const failures = command.failures + 1;
  const policy = command.step?.policy;
  if (policy === undefined || backoff === undefined || failures >= policy.maxDeliveries)
    return gaveUp(command, error, nowMs);
  let waitMs = delayMs;
  try {
    waitMs ??= redeliveryDelayMs({ ...policy, backoff }, failures, random);
  } catch (policyError) {
    return gaveUp(command, policyError, nowMs);
  }
  const { at, attempts: attempt } = command;
  const next = { nextMs: nowMs + waitMs, error: journalError(toError(error)) };
  return { kind: 'attempt-failed', at, attempt, atMs: nowMs, spent: true, ...next };
}

/**
 * From the beginning of an attempt to the next one, should this one leave nothing behind either.
 * @param lost how many before it did not. @param spread from 0 to 1: so that what was lost together is apart from then on
 */
export function lostWaitMs(lost: number, spread: number): number {
  return Math.ceil((Math.min(MAX_LOST_WAIT_MS, seconds(1) * 2 ** lost) * (1 + spread)) / 2);
}

/** Nothing was wrong with the step itself: no attempt is spent. */
function again(command: Command, error: Error, { nowMs }: StepFacts, nextMs: number): JournalEntry {
  const { at, attempts: attempt } = command;
  return { kind: 'attempt-failed', at, attempt, atMs: nowMs, spent: false, nextMs, error: journalError(error) };
}

/** A compensation that gives up is for a person: giving it up for good would leave things half done. */
export function gaveUp({ at, kind }: Command, error: unknown, atMs: number): JournalEntry {
  const shown = journalError(isErrorLike(error) ? error : new Error(describeValue(error)));
  return { kind: kind === 'compensate' ? 'stuck' : 'failed', at, atMs, error: shown };
}

function isErrorLike(error: unknown): error is Error {
  return error instanceof Error;
}
