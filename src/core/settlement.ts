// settlementFor: from what a handler said and what is known, the one settlement that follows. Pure and total.
// The Settler performs it; docs/settlement.md holds the same table and a test compares the two.
import type { DeadLetterCause } from './dead-letter.js';
import { MAX_DURATION_MS, minutes, seconds } from './options.js';
import type { OutgoingMessage } from './message.js';
import type { Defer, DependencyDown, Failure, Outcome, Retry, RetryAfter } from './outcome.js';
import type { RedeliveryPolicy } from './redelivery-policy.js';
import { redeliveryDelayMs } from './redelivery-policy.js';
import type { Ordering, SubscriptionType } from './subscription-spec.js';
import { redeliversSingly } from './subscription-spec.js';

/**
 * How a delivery waits. `hold`: only its id waits, unacknowledged, then the broker is asked for redelivery.
 * `local`: it is kept, payload included, and run again in place. `republish`: it is published to the retry letter topic
 * and acknowledged.
 */
export type RedeliveryStrategy = 'hold' | 'local' | 'republish';

/** Publish `messages`, await every receipt, then acknowledge. */
export interface Acknowledge {
  readonly kind: 'acknowledge';
  readonly messages: readonly OutgoingMessage[];
}
export interface Outage {
  readonly dependency: string;
  readonly scope: 'subscription' | 'key';
}

/** Wait `delayMs`, then deliver to the handler again. */
export interface Redeliver {
  readonly kind: 'redeliver';
  readonly strategy: RedeliveryStrategy;
  readonly delayMs: number;
  readonly spendsAttempt: boolean;
  readonly failure: Failure;
  /** What is down: the subscription, or the key, pauses until this delivery has succeeded as its probe. */
  readonly outage: Outage | undefined;
}
/** Publish the dead letter, await its receipt, then acknowledge. */
export interface DeadLetterSettlement {
  readonly kind: 'dead-letter';
  readonly cause: DeadLetterCause;
  readonly failure: Failure;
}
/**
 * What is given up without a dead letter, because the handler's options say so. `skip`: acknowledge. `block`: keep it
 * until a person decides, with `onDeadLetter: 'block-key'` its key behind it.
 */
export interface GiveUp {
  readonly kind: 'skip' | 'block';
  readonly cause: DeadLetterCause;
  readonly failure: Failure;
}
/** Leave unsettled: the broker delivers it again after the subscription closes. */
export interface Leave {
  readonly kind: 'leave';
  readonly failure: Failure;
}

export type Settlement = Acknowledge | Redeliver | DeadLetterSettlement | GiveUp | Leave;

/** What becomes of a message that is given up. */
export type DeadLetterChoice = 'publish' | 'block' | 'skip';
export const DEAD_LETTER_CHOICES: readonly DeadLetterChoice[] = ['publish', 'block', 'skip'];

export interface SettlementFacts {
  /** 1 for the first delivery. */
  readonly attempt: number;
  readonly policy: RedeliveryPolicy;
  readonly type: SubscriptionType;
  readonly ordering: Ordering;
  /** Whether the broker sends it again when asked: not what came on a topic that is not persistent. */
  readonly comesAgain: boolean;
  /** Under `ordering: 'key'`: whether the broker sends nothing later of the key until it is acknowledged (PIP-493). */
  readonly brokerKeepsOrder: boolean;
  readonly deadLetter: DeadLetterChoice;
  /** Whether what is given up waits for a person first (`onDeadLetter: 'block-key'`). */
  readonly keyBlocks: boolean;
  /** Whether there is a retry letter topic to publish to. */
  readonly republishes: boolean;
  /** As many deliveries wait here as may. */
  readonly heldFull: boolean;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly random: () => number;
}

/** How long a probe waits after `dependencyDown` without `retryAfterMs`, doubling each time up to a minute. */
const PROBE_MIN_MS = 1_000;
const PROBE_MAX_MS = 60_000;

/** Longer waits are published again where that is allowed: what is held pins the subscription's backlog. */
const MAX_HOLD_MS = minutes(10);
/** On Key_Shared a held message keeps its hash with this consumer when others join. */
const MAX_KEY_SHARED_HOLD_MS = seconds(60);

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
      return deferred(outcome, facts);
    case 'dependency-down':
      return { ...keep(outcome.failure, outcome.retryAfterMs ?? PROBE_MIN_MS), outage: outageOf(outcome) };
    case 'poison':
      return givenUp(outcome.cause, outcome.failure, facts);
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
    return givenUp(outcome.kind === 'retry' ? outcome.cause : 'redeliveries-exhausted', failure, facts);
  }
  const delayMs =
    outcome.kind === 'retry-after'
      ? outcome.delayMs
      : redeliveryDelayMs(policyOf(outcome, facts), facts.attempt, facts.random);
  const strategy = redeliveryStrategy(delayMs, facts);
  return { kind: 'redeliver', strategy, delayMs, spendsAttempt: true, failure, outage: undefined };
}

function policyOf({ backoff }: Retry, { policy }: SettlementFacts): RedeliveryPolicy {
  return backoff === undefined ? policy : { ...policy, backoff };
}

function givenUp(cause: DeadLetterCause, failure: Failure, facts: SettlementFacts): Settlement {
  return facts.keyBlocks
    ? { kind: 'block', cause, failure }
    : settlementOfGivenUp({ cause, failure }, facts.deadLetter);
}

/** What becomes of a message that is given up, and of one that a person gives up after it was blocked. */
export function settlementOfGivenUp(
  { cause, failure }: Pick<GiveUp, 'cause' | 'failure'>,
  deadLetter: DeadLetterChoice,
): DeadLetterSettlement | GiveUp {
  return deadLetter === 'publish' ? { kind: 'dead-letter', cause, failure } : { kind: deadLetter, cause, failure };
}

/** What `redeliveryStrategy` goes by. */
export type StrategyFacts = Pick<
  SettlementFacts,
  'type' | 'ordering' | 'comesAgain' | 'brokerKeepsOrder' | 'republishes' | 'heldFull'
>;

/**
 * Asking the broker back counts there and lets later messages of a key pass, so single consumers wait in place, and so does
 * order where the broker does not keep it.
 */
export function redeliveryStrategy(delayMs: number, facts: StrategyFacts): RedeliveryStrategy {
  if (isPublishedAgain(delayMs, facts)) return 'republish';
  const orderHolds = facts.ordering === 'none' || facts.brokerKeepsOrder;
  return facts.comesAgain && redeliversSingly(facts.type) && orderHolds ? 'hold' : 'local';
}

function isPublishedAgain(delayMs: number, { type, republishes, heldFull }: StrategyFacts): boolean {
  return republishes && (heldFull || delayMs > longestHoldMs(type));
}

/** Milliseconds. Longer waits are published again where there is a retry letter topic. */
export function longestHoldMs(type: SubscriptionType): number {
  return type === 'key-shared' ? MAX_KEY_SHARED_HOLD_MS : MAX_HOLD_MS;
}

/** Nothing failed, so the broker must not count it: kept here, or published again when that takes long. */
function deferred({ until, failure }: Defer, facts: SettlementFacts): Redeliver {
  const kept = keep(failure, deferMs(until, facts.now));
  return isPublishedAgain(kept.delayMs, facts) ? { ...kept, strategy: 'republish' } : kept;
}

function keep(failure: Failure, delayMs: number): Redeliver {
  return { kind: 'redeliver', strategy: 'local', delayMs, spendsAttempt: false, failure, outage: undefined };
}

function outageOf({ dependency, scope }: DependencyDown): Outage {
  return { dependency, scope };
}

function deferMs(until: number | Date, now: number): number {
  return until instanceof Date ? Math.min(Math.max(0, until.getTime() - now), MAX_DURATION_MS) : until;
}
