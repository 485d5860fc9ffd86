// What a handler's options mean in time and place, worked out before anything runs: when a message that always fails
// comes back, how it waits, when it is given up and where it goes. Pure; explanation-text.ts puts it into words.
import type { BatchLimits } from '../core/batch-handler.js';
import { toError } from '../core/errors.js';
import type { HandlerOptions, OnDeadLetter } from '../core/handler-definition.js';
import type { RedeliveryPolicy } from '../core/redelivery-policy.js';
import { DEFAULT_REDELIVERY_POLICY, redeliveryDelayMs } from '../core/redelivery-policy.js';
import type { DeadLetterChoice, RedeliveryStrategy, StrategyFacts } from '../core/settlement.js';
import { longestHoldMs, redeliveryStrategy } from '../core/settlement.js';
import type { OrderedNegativeAckMode, Ordering } from '../core/subscription-spec.js';
import { crashConsequences } from './crash-consequences.js';
import { explanationText } from './explanation-text.js';
import type { HandlerPlan } from './handler-plan.js';
import { placelessOf } from './placeless-messages.js';
import { orderingPromise } from './ordering-promise.js';
import type { TopologyEntry } from './topology.js';
import { topologyOf } from './topology.js';

/** The wait between a failed delivery and the next one, by the handler's policy. */
export interface WaitExplanation {
  /** The delivery that failed: 1 for the first. */
  readonly afterDelivery: number;
  /** Milliseconds; the same as `maxMs` where the backoff has no jitter. */
  readonly minMs: number;
  readonly maxMs: number;
  /** How it waits. Two where the jitter decides which, or whether the topic is persistent. */
  readonly strategies: readonly RedeliveryStrategy[];
  /** Why the default backoff stands in for the handler's own here; undefined where its own works. */
  readonly policyFailure: string | undefined;
}

/** What becomes of a message when the process dies at one moment of its life. */
export interface CrashConsequence {
  readonly stage: string;
  readonly consequence: string;
}

/** One handler, explained. Topic names are full. */
export interface HandlerExplanation extends TopologyEntry {
  /** Runs at a time; of a batch handler, batches. */
  readonly concurrency: number;
  /** Limits of a batch; undefined: the handler takes one delivery. */
  readonly batch: BatchLimits | undefined;
  readonly ordering: Ordering;
  /** What may be expected of the order of messages, in one sentence. */
  readonly orderingPromise: string;
  /** Milliseconds that a transaction of messages and acknowledgement may take; undefined: there is none. */
  readonly transactionTimeoutMs: number | undefined;
  /** Names of the error classes that have a rule in `onError`, in order. */
  readonly errorRules: readonly string[];
  /** Errors without such a rule that mean that something is down; every other error is `retry`. */
  readonly outageRules: readonly { readonly dependency: string; readonly errors: readonly string[] }[];
  /** Deliveries to the handler, the first included. */
  readonly maxDeliveries: number;
  /** Milliseconds a run may take; undefined: no limit. */
  readonly timeoutMs: number | undefined;
  /** Milliseconds a timed-out run may go on before it is given up. */
  readonly abandonAfterMs: number;
  /** Milliseconds after which the broker is asked for a message that still runs; undefined: never. */
  readonly ackTimeoutMs: number | undefined;
  /** Who keeps a message until its `deliverAt`. */
  readonly delayedDelivery: 'client' | 'broker';
  /** Of which of its topics brokers keep messages until they are acknowledged: `none` where no topic is persistent. */
  readonly keptByBroker: 'all' | 'some' | 'none';
  /** One per failed delivery but the last; the first 1,000. */
  readonly waits: readonly WaitExplanation[];
  /** The longest that a wait is held, milliseconds; longer ones are published again where there is a retry letter topic. */
  readonly longestHoldMs: number;
  /** Deliveries that may wait at a time, in this process. */
  readonly maxHeld: number;
  /**
   * From the start of the first delivery to the end of a message that always fails, milliseconds at most: the longest
   * waits, for each run `timeoutMs` and `abandonAfterMs`, and for each batch `maxWaitMs`; without a time limit the runs
   * are not in it. What is in nobody's hand is not in it either: deferrals, outages, pauses, delays that an outcome names itself, waiting for a
   * free slot. Undefined where `maxDeliveries` is above 1,001.
   */
  readonly worstCaseMs: number | undefined;
  /** What becomes of a message that is given up. */
  readonly deadLetter: DeadLetterChoice;
  /** Whether its key goes on then, or waits for a person. */
  readonly onDeadLetter: OnDeadLetter;
  /** Whether a broker that can keeps the order of a key that failed. */
  readonly orderedNegativeAck: OrderedNegativeAckMode;
  /** The subscription that dead letters are kept for; undefined: none is made. */
  readonly deadLetterSubscription: string | undefined;
  /** What is done with a dead letter that the broker refuses for good. */
  readonly onDeadLetterRefused: 'hold' | 'function' | { readonly fallbackTopic: string };
  /** By the moment of the crash, in the order of a message's life. */
  readonly crashes: readonly CrashConsequence[];
  /** All of it for people, several lines. */
  readonly text: string;
}

/** What is known beyond the handler's own options. */
export interface ExplanationFacts {
  /** Whether attempts are written down outside the process (AttemptStore). */
  readonly recordsAttempts: boolean;
}

/** More waits than this are not listed: a policy may allow more deliveries than could be counted. */
const MAX_WAITS = 1_000;
const KEPT = { none: 'all', some: 'some', all: 'none' } as const;
/** Whether a broker sends a message again when it is asked, for each kind of topic. */
const COMES_AGAIN = { none: [true], some: [true, false], all: [false] } as const;
/** The ends of what a source of randomness gives. */
const LOWEST = (): number => 0;
const HIGHEST = (): number => 1 - Number.EPSILON / 2;

/** Asks the plan's backoff for every wait, twice: once with the lowest and once with the highest random number. */
export function explainHandler(plan: HandlerPlan, facts: ExplanationFacts): HandlerExplanation {
  const [topology] = topologyOf([plan]);
  if (topology === undefined) throw new Error(`handler ${plan.name} has no topology`);
  const waits = waitsOf(plan);
  const values = {
    ...topology,
    concurrency: plan.concurrency,
    batch: plan.batch,
    ordering: plan.ordering,
    orderingPromise: orderingPromise(plan),
    transactionTimeoutMs: plan.transactional?.timeoutMs,
    errorRules: plan.onError.map(({ errorClass }) => errorClass.name),
    outageRules: plan.outage.map(({ dependency, errors }) => ({ dependency, errors: errors.map(({ name }) => name) })),
    maxDeliveries: plan.policy.maxDeliveries,
    timeoutMs: plan.timeoutMs,
    abandonAfterMs: plan.abandonAfterMs,
    ackTimeoutMs: plan.ackTimeoutMs,
    delayedDelivery: plan.delaysInClient ? ('client' as const) : ('broker' as const),
    keptByBroker: KEPT[placelessOf(plan.spec)],
    waits,
    longestHoldMs: longestHoldMs(plan.spec.type),
    maxHeld: plan.maxHeld,
    worstCaseMs: worstCaseMs(plan, waits),
    deadLetter: plan.deadLetter,
    onDeadLetter: plan.keyBlocks ? ('block-key' as const) : ('continue' as const),
    orderedNegativeAck: plan.spec.orderedNegativeAck ?? 'disabled',
    deadLetterSubscription: plan.deadLetterSubscription,
    onDeadLetterRefused: refusalRule(plan.onDeadLetterRefused),
    crashes: crashConsequences(plan, waits, facts),
  };
  return { ...values, text: explanationText(values) };
}

function waitsOf({ policy, spec, ordering, retry, brokerMayKeepOrder }: HandlerPlan): readonly WaitExplanation[] {
  const where = { type: spec.type, ordering, brokerKeepsOrder: brokerMayKeepOrder };
  const facts = { ...where, republishes: retry !== undefined, heldFull: false };
  const kinds = COMES_AGAIN[placelessOf(spec)].map((comesAgain) => ({ ...facts, comesAgain }));
  const count = Math.min(policy.maxDeliveries - 1, MAX_WAITS);
  return Array.from({ length: count }, (_, i) => waitAfter(i + 1, policy, kinds));
}

/** A backoff that fails is replaced for this wait only, as the Settler does. */
function waitAfter(afterDelivery: number, policy: RedeliveryPolicy, kinds: readonly StrategyFacts[]): WaitExplanation {
  const between = ({ backoff }: Pick<RedeliveryPolicy, 'backoff'>, policyFailure?: string): WaitExplanation => {
    const ends = [LOWEST, HIGHEST].map((random) => redeliveryDelayMs({ ...policy, backoff }, afterDelivery, random));
    const all = ends.flatMap((delayMs) => kinds.map((facts) => redeliveryStrategy(delayMs, facts)));
    const strategies = [...new Set(all)];
    return { afterDelivery, minMs: Math.min(...ends), maxMs: Math.max(...ends), strategies, policyFailure };
  };
  try {
    return between(policy);
  } catch (error) {
    return between(DEFAULT_REDELIVERY_POLICY, toError(error).message);
  }
}

function worstCaseMs(
  { policy, timeoutMs, abandonAfterMs, batch }: HandlerPlan,
  waits: readonly WaitExplanation[],
): number | undefined {
  if (waits.length < policy.maxDeliveries - 1) return undefined;
  const runMs = timeoutMs === undefined ? 0 : timeoutMs + abandonAfterMs;
  const deliveryMs = (batch?.maxWaitMs ?? 0) + runMs;
  return waits.reduce((sum, { maxMs }) => sum + maxMs, policy.maxDeliveries * deliveryMs);
}

function refusalRule(
  rule: NonNullable<HandlerOptions['onDeadLetterRefused']>,
): HandlerExplanation['onDeadLetterRefused'] {
  return typeof rule === 'function' ? 'function' : rule;
}
