// settlementFor: from what a handler said and what is known, the one settlement that follows. Pure and total.
// The Settler performs it; docs/settlement.md holds the same table and a test compares the two.
import type { DeadLetterCause } from './dead-letter.js';
import { MAX_DURATION_MS } from './options.js';
import type { OutgoingMessage } from './message.js';
import type { Failure, Outcome, Retry, RetryAfter } from './outcome.js';
import type { RedeliveryPolicy } from './redelivery-policy.js';
import { redeliveryDelayMs } from './redelivery-policy.js';
import type { Ordering, SubscriptionType } from './subscription-spec.js';
import { redeliversSingly } from './subscription-spec.js';

/**
 * How a delivery waits. `hold`: only its id waits, unacknowledged, then the broker is asked for redelivery.
 * `local`: it is kept, payload included, and run again in place.
 */
export type RedeliveryStrategy = 'hold' | 'local';

/** Publish `messages`, await every receipt, then acknowledge. */
export interface Acknowledge {
  readonly kind: 'acknowledge';
  readonly messages: readonly OutgoingMessage[];
}
/** Wait `delayMs`, then deliver to the handler again. */
export interface Redeliver {
  readonly kind: 'redeliver';
  readonly strategy: RedeliveryStrategy;
  readonly delayMs: number;
  readonly spendsAttempt: boolean;
  readonly failure: Failure;
  /** The dependency that is down: the subscription pauses until this delivery has succeeded as its probe. */
  readonly outage: string | undefined;
}
/** Publish the dead letter, await its receipt, then acknowledge. */
export interface DeadLetterSettlement {
  readonly kind: 'dead-letter';
  readonly cause: DeadLetterCause;
  readonly failure: Failure;
}
/** Leave unsettled: the broker delivers it again after the subscription closes. */
export interface Leave {
  readonly kind: 'leave';
  readonly failure: Failure;
}

export type Settlement = Acknowledge | Redeliver | DeadLetterSettlement | Leave;

export interface SettlementFacts {
  /** 1 for the first delivery. */
  readonly attempt: number;
  readonly policy: RedeliveryPolicy;
  readonly type: SubscriptionType;
  readonly ordering: Ordering;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly random: () => number;
}

/** How long a probe waits after `dependencyDown` without `retryAfterMs`, doubling each time up to a minute. */
const PROBE_MIN_MS = 1_000;
const PROBE_MAX_MS = 60_000;

/** @throws PulseworkError POLICY_FAILED when the policy's own code fails; the caller then uses the default policy. */
export function settlementFor(outcome: Outcome, facts: SettlementFacts): Settlement {
  switch (outcome.kind) {
    case 'success':
      return { kind: 'acknowledge', messages: outcome.messages };
    case 'skip':
      return { kind: 'acknowledge', messages: [] };
    case 'retry':
    case 'retry-after':
      return failedRun(outcome, facts);
    case 'defer':
      return keep(outcome.failure, deferMs(outcome.until, facts.now), undefined);
    case 'dependency-down':
      return keep(outcome.failure, outcome.retryAfterMs ?? PROBE_MIN_MS, outcome.dependency);
    case 'poison':
      return { kind: 'dead-letter', cause: outcome.cause, failure: outcome.failure };
    case 'fatal':
      return { kind: 'leave', failure: outcome.failure };
  }
}

/** The wait of the n-th probe in a row (0 for the first) of a dependency that is down; at least 1 ms, or it would spin. */
export function probeDelayMs(delayMs: number, probes: number): number {
  const first = Math.max(delayMs, 1);
  return Math.max(first, Math.min(first * 2 ** Math.min(probes, 30), PROBE_MAX_MS));
}

/** `maxDeliveries` counts deliveries to the handler, the first included: attempt 3 of 3 failed means dead letter. */
function failedRun(outcome: Retry | RetryAfter, facts: SettlementFacts): Settlement {
  const { failure } = outcome;
  if (facts.attempt >= facts.policy.maxDeliveries) {
    return { kind: 'dead-letter', cause: outcome.kind === 'retry' ? outcome.cause : 'redeliveries-exhausted', failure };
  }
  const delayMs =
    outcome.kind === 'retry-after' ? outcome.delayMs : redeliveryDelayMs(facts.policy, facts.attempt, facts.random);
  const strategy = redeliveryStrategy(facts.type, facts.ordering);
  return { kind: 'redeliver', strategy, delayMs, spendsAttempt: true, failure, outage: undefined };
}

/** Asking the broker back counts there and lets later messages of a key pass, so order and single consumers wait in place. */
export function redeliveryStrategy(type: SubscriptionType, ordering: Ordering): RedeliveryStrategy {
  return redeliversSingly(type) && ordering === 'none' ? 'hold' : 'local';
}

function keep(failure: Failure, delayMs: number, outage: string | undefined): Redeliver {
  return { kind: 'redeliver', strategy: 'local', delayMs, spendsAttempt: false, failure, outage };
}

function deferMs(until: number | Date, now: number): number {
  return until instanceof Date ? Math.min(Math.max(0, until.getTime() - now), MAX_DURATION_MS) : until;
}
