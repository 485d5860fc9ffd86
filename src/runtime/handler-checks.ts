// What can be wrong with one handler definition: each rule gives a sentence that names the option, the value and
// the remedy. Nothing throws: the sentences of all handlers are reported together.
import { checkBatchOptions } from '../core/batch-handler.js';
import { checkDeliveryPause } from '../core/delivery-pause.js';
import { describeValue, toError } from '../core/errors.js';
import { checkFairness } from '../core/fairness.js';
import type { HandlerDefinition, HandlerOptions } from '../core/handler-definition.js';
import { HANDLER_OPTION_NAMES } from '../core/handler-definition.js';
import { OptionChecker } from '../core/options.js';
import { checkRedact } from '../core/redaction.js';
import { backoffHint, checkRedeliveryPolicy } from '../core/redelivery-policy.js';
import { DEAD_LETTER_CHOICES } from '../core/settlement.js';
import { ORDERED_NEGATIVE_ACK_MODES, SUBSCRIPTION_TYPES, redeliversSingly } from '../core/subscription-spec.js';
import { isTopic } from '../core/topic.js';
import { qualifiedPattern, topicPattern } from '../core/topic-pattern.js';
import type { Transport } from '../ports/transport.js';
import { MIN_ACK_TIMEOUT_MS } from '../redelivery/ack-timeout-tracker.js';
import {
  checkEffects,
  checkErrorRules,
  checkIdempotency,
  checkOutageRules,
  checkRefusalRule,
} from './handler-rule-checks.js';
import { checkOrdering } from './ordering-checks.js';
import { checkTransactions } from './transactional-checks.js';

/** How a definition was made: by `defineHandler`, or by `@Subscribe` on a method. */
export type HandlerPlace = 'function' | 'method';

export interface HandlerCheckFacts {
  readonly place: HandlerPlace;
  readonly fullName: (name: string) => string;
  readonly namespace: string;
  readonly transport: Pick<Transport, 'name' | 'capabilities'>;
}

/** What is named where an option is misspelt: all that stands in the same braces. */
const NAMES: Readonly<Record<HandlerPlace, readonly string[]>> = {
  function: ['name', 'source', 'subscription', 'handle', 'batch', 'payload', 'codec', ...HANDLER_OPTION_NAMES],
  method: ['subscription', 'batch', 'payload', 'codec', ...HANDLER_OPTION_NAMES],
};

const SOURCES = 'a topic(), a list of them, a topic name or { pattern }';

/** All problems of `definition`, as sentences that start with the handler's name. */
export function handlerProblems(
  definition: HandlerDefinition,
  { place, ...facts }: HandlerCheckFacts,
): readonly string[] {
  const { fullName } = facts;
  const check = new OptionChecker(subjectOf(definition.name));
  checkRequired(definition, place, check);
  check.nonEmptyString('name', definition.name);
  check.function('handle', definition.handle);
  if ((definition.source as unknown) !== undefined) checkSource(definition, facts, check);
  checkBatchOptions(definition.batch, check);
  if (check.object('options', definition.options)) {
    checkOptions(definition.options, place, check);
    checkCombinations(definition.options, check);
    checkOrdering(definition.options, facts.transport, check);
    checkTopicOptions(definition.options, fullName, check);
    checkIdempotency(definition, check);
    checkEffects(definition, check);
    const { transactional, publishes } = definition.options;
    checkTransactions(transactional, { source: definition.source, publishes }, facts.transport, check);
  }
  return check.problems;
}

function subjectOf(name: unknown): string {
  return typeof name === 'string' && name.trim() !== ''
    ? `handler ${JSON.stringify(name)}`
    : 'a handler without a name';
}

function checkRequired(definition: HandlerDefinition, place: HandlerPlace, check: OptionChecker): void {
  const own = { name: 'a text that is not empty', handle: 'a function', subscription: "the subscription's name" };
  check.required(definition, place === 'method' ? { source: SOURCES } : { source: SOURCES, ...own });
  if (place === 'function') return check.nonEmptyString('subscription', definition.subscription);
  if (typeof definition.subscription !== 'string' || definition.subscription.trim() === '')
    check.problem('it has no subscription name; give "subscription" to @Handler or @Subscribe');
}

function checkSource(
  definition: HandlerDefinition,
  facts: Omit<HandlerCheckFacts, 'place'>,
  check: OptionChecker,
): void {
  const { fullName } = facts;
  const source: unknown = definition.source;
  const hasPayload = definition.payload !== undefined || definition.codec !== undefined;
  if (typeof source === 'string') return checkTopicName(source, fullName, check);
  if (isTopic(source) || Array.isArray(source)) {
    const topics: readonly unknown[] = isTopic(source) ? [source] : source;
    if (topics.length === 0) check.problem('its list of topics is empty; name at least one');
    if (hasPayload)
      check.problem('"payload" and "codec" belong to topic(); they are for sources given by name or pattern');
    for (const [at, topic] of topics.entries()) {
      if (isTopic(topic)) checkTopicName(topic.name, fullName, check);
      else check.problem(`its list of topics takes results of topic(), item ${at} is ${describeValue(topic)}`);
    }
    return;
  }
  const { pattern } = (typeof source === 'object' && source !== null ? source : {}) as { pattern?: unknown };
  if (pattern instanceof RegExp) return checkPattern(pattern, definition, facts, check);
  if (pattern !== undefined)
    return check.problem(`its pattern must be a RegExp such as /orders-.+/, got ${describeValue(pattern)}`);
  if (source instanceof RegExp)
    return check.problem(`its source must be ${SOURCES}; write { pattern: ${String(source)} }`);
  check.problem(`its source must be ${SOURCES}, got ${describeValue(source)}`);
}

/** Letters of its own that a pattern means would go round for ever (G-19). */
function checkPattern(
  pattern: RegExp,
  { options, subscription }: HandlerDefinition,
  { fullName, namespace, transport }: Omit<HandlerCheckFacts, 'place'>,
  check: OptionChecker,
): void {
  if (!transport.capabilities.has('pattern-subscriptions'))
    check.problem(`the ${transport.name} transport cannot subscribe by pattern; list the topics`);
  const wrong = topicPattern(pattern, subscription, undefined);
  if (typeof wrong === 'string') return check.problem(`its pattern ${wrong}, got ${describeValue(String(pattern))}`);
  const parsed = topicPattern(qualifiedPattern(pattern, namespace), subscription, undefined);
  if (typeof parsed === 'string') return; // the namespace is wrong, which is said where it was given
  const { retryTopic, deadLetterTopic } = (options as HandlerOptions | undefined) ?? {};
  if (retryTopic === true)
    check.problem('"retryTopic: true" makes a topic for each one that is named; beside a pattern, give it a name');
  for (const [option, name] of Object.entries({ retryTopic, deadLetterTopic })) {
    if (typeof name !== 'string' || !isTopicName(name, fullName) || !parsed.matches(fullName(name))) continue;
    check.problem(`"${option}" ${name} is one of the topics that its own pattern ${parsed.text} means`);
  }
}

function isTopicName(name: string, fullName: (name: string) => string): boolean {
  try {
    fullName(name);
    return true;
  } catch {
    return false;
  }
}

function checkTopicName(name: string, fullName: (name: string) => string, check: OptionChecker): void {
  try {
    fullName(name);
  } catch (error) {
    check.problem(toError(error).message);
  }
}

function checkOptions(options: HandlerOptions, place: HandlerPlace, check: OptionChecker): void {
  // The last three have sentences of their own.
  check.unknownOptions(options, [...HANDLER_OPTION_NAMES, 'batch', 'maxDeliveries', 'backoff'], '', NAMES[place]);
  for (const name of ['maxDeliveries', 'backoff'].filter((own) => own in options))
    check.problem(`${JSON.stringify(name)} belongs to "redelivery"; write redelivery: { ${name} }`);
  if ('batch' in options) check.problem('"batch" is an option of a method; move it from @Handler to its @Subscribe');
  check.oneOf('type', options.type, SUBSCRIPTION_TYPES);
  check.oneOf('initialPosition', options.initialPosition, ['earliest', 'latest']);
  check.positiveInteger('concurrency', options.concurrency);
  check.oneOf('ordering', options.ordering, ['none', 'key', 'partition']);
  check.positiveInteger('prefetch', options.prefetch);
  checkRedeliveryPolicy(options.redelivery, check);
  check.durationMs('timeoutMs', options.timeoutMs, { minMs: 1 });
  check.durationMs('abandonAfterMs', options.abandonAfterMs);
  check.positiveInteger('maxHeld', options.maxHeld);
  check.positiveInteger('maxHeldBytes', options.maxHeldBytes);
  check.positiveInteger('maxLaneMessages', options.maxLaneMessages);
  check.nonEmptyString('deadLetterTopic', options.deadLetterTopic);
  check.durationMs('ackTimeoutMs', options.ackTimeoutMs, { minMs: MIN_ACK_TIMEOUT_MS });
  check.function('ackTimeoutBackoff', options.ackTimeoutBackoff, backoffHint(options.ackTimeoutBackoff));
  check.oneOf('delayedDelivery', options.delayedDelivery, ['client', 'broker', 'auto']);
  check.oneOf('deadLetter', options.deadLetter, DEAD_LETTER_CHOICES);
  check.oneOf('onDeadLetter', options.onDeadLetter, ['continue', 'block-key']);
  check.oneOf('orderedNegativeAck', options.orderedNegativeAck, ORDERED_NEGATIVE_ACK_MODES);
  if (options.deadLetterSubscription !== false)
    check.nonEmptyString('deadLetterSubscription', options.deadLetterSubscription);
  checkRefusalRule(options.onDeadLetterRefused, check);
  if (typeof options.retryTopic !== 'boolean') check.nonEmptyString('retryTopic', options.retryTopic);
  checkFairness(options.fairness, check);
  checkDeliveryPause(options.deliveryPause, check);
  checkRedact(options.redact, check);
  checkErrorRules(options.onError, check);
  checkOutageRules(options.outage, check);
}

/** What the broker or the runtime could not honour together: refused, never quietly weakened. */
function checkCombinations(options: HandlerOptions, check: OptionChecker): void {
  const { type = 'shared', ordering = 'none', timeoutMs, abandonAfterMs, retryTopic = false } = options;
  if (retryTopic !== false && (!redeliversSingly(type) || ordering !== 'none')) {
    check.problem(
      '"retryTopic" lets later messages pass, which exclusive and failover subscriptions and "ordering" forbid; leave it out, or use type "shared" without "ordering"',
    );
  }
  checkAckTimeout(options, check);
  if (abandonAfterMs !== undefined && timeoutMs === undefined) {
    check.problem('"abandonAfterMs" says what follows a time limit; set "timeoutMs" too');
  }
}

/** It asks the broker back for what still runs, so it needs what `hold` needs, and must not come before the time limit. */
function checkAckTimeout(options: HandlerOptions, check: OptionChecker): void {
  const { type = 'shared', ordering = 'none', timeoutMs = 0, ackTimeoutMs, ackTimeoutBackoff } = options;
  if (ackTimeoutMs === undefined) {
    if (ackTimeoutBackoff !== undefined) check.problem('"ackTimeoutBackoff" adds to "ackTimeoutMs"; set that too');
    return;
  }
  if (!redeliversSingly(type) || ordering !== 'none') {
    check.problem(
      `"ackTimeoutMs" would send messages again that exclusive and failover subscriptions and "ordering" must keep in place; use "timeoutMs"`,
    );
  }
  if (ackTimeoutMs <= timeoutMs)
    check.problem(`"ackTimeoutMs" must be above "timeoutMs", got ${ackTimeoutMs} and ${timeoutMs}`);
}

function checkTopicOptions(options: HandlerOptions, fullName: (name: string) => string, check: OptionChecker): void {
  const { onDeadLetterRefused: rule } = options;
  const fallback = typeof rule === 'object' ? (rule as { fallbackTopic?: unknown } | null)?.fallbackTopic : undefined;
  for (const name of [options.deadLetterTopic, options.retryTopic, fallback])
    if (typeof name === 'string' && name.trim() !== '') checkTopicName(name, fullName, check);
  const publishes: unknown = options.publishes;
  if (publishes === undefined) return;
  if (!Array.isArray(publishes))
    return check.problem(`"publishes" must be a list of topics, got ${describeValue(publishes)}`);
  for (const [at, topic] of (publishes as readonly unknown[]).entries()) {
    if (isTopic(topic)) checkTopicName(topic.name, fullName, check);
    else check.problem(`"publishes" takes results of topic(), item ${at} is ${describeValue(topic)}`);
  }
}
