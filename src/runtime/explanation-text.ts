// Explanations in words: the page that `explain` gives, and the line per handler that a runtime logs at start.
import { durationText } from '../core/duration-text.js';
import type { RedeliveryStrategy } from '../core/settlement.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { LogFields } from '../ports/logger.js';
import type { HandlerExplanation, WaitExplanation } from './explanation.js';

type Explained = Omit<HandlerExplanation, 'text'>;

const STRATEGY_WORDS: Readonly<Record<RedeliveryStrategy, string>> = {
  hold: 'held by id',
  local: 'kept in place',
  republish: 'published again',
};

/**
 * Several lines: what it is about, then each side of it under a name of its own.
 * @param crashesAs the handler that was told about before with the same consequences of a crash: they are not told again.
 */
export function explanationText(explained: Explained, crashesAs?: string): string {
  const { handler, subscription, type } = explained;
  const sections: readonly (readonly [name: string, lines: readonly string[]])[] = [
    ['from', explained.from],
    ['subscription', [`${subscription}, ${type}, ${runsText(explained)} at a time`]],
    ['to', toLines(explained)],
    ['order', [explained.orderingPromise]],
    ['errors', errorLines(explained)],
    ['deliveries', [deliveriesLine(explained)]],
    ['waits', waitLines(explained)],
    ['deferrals', [deferralsLine(explained)]],
    ['deliverAt', [delayLine(explained)]],
    ['limit', [limitLine(explained)]],
    ['given up', [...givenUpLines(explained), worstCaseLine(explained)]],
  ];
  const width = Math.max(...sections.map(([name]) => name.length)) + 2;
  const body = sections.flatMap(([name, lines]) =>
    lines.map((line, i) => `  ${(i === 0 ? name : '').padEnd(width)}${line}`),
  );
  return [handler, ...body, ...crashLines(explained, crashesAs)].join('\n');
}

function toLines({ to, transactionTimeoutMs }: Explained): readonly string[] {
  const where = to === undefined ? ['anywhere'] : to.length === 0 ? ['nowhere'] : to;
  if (transactionTimeoutMs === undefined) return where;
  const limit = durationText(transactionTimeoutMs);
  return [...where, `in one transaction with the acknowledgement, for ${limit} at most`];
}

function crashLines({ crashes }: Explained, crashesAs: string | undefined): readonly string[] {
  if (crashesAs !== undefined) return [`  if the process dies: as ${crashesAs} above`];
  return [
    '  if the process dies',
    ...crashes.flatMap(({ stage, consequence }) => [`    ${stage}:`, `      ${consequence}`]),
  ];
}

/** What the log says about a handler at start: how its delays wait, and what a person should know about them. */
export function startReport(explained: HandlerExplanation): LogFields {
  const { handler, subscription, type, ordering, from, maxDeliveries, delayedDelivery } = explained;
  return {
    handler,
    subscription,
    type,
    ordering,
    topics: from,
    maxDeliveries,
    waits: strategiesLine(explained),
    deferrals: deferralsLine(explained),
    delayedDelivery,
    givenUp: givenUpLines(explained)[0],
  };
}

function runsText({ concurrency, batch }: Explained): string {
  if (batch === undefined) return counted(concurrency, 'run');
  const { maxMessages, maxWaitMs } = batch;
  return `${counted(concurrency, 'batch', 'batches')} of up to ${counted(maxMessages, 'message')}, collected for ${durationText(maxWaitMs)} at most,`;
}

function errorLines({ errorRules, outageRules }: Explained): readonly string[] {
  if (errorRules.length + outageRules.length === 0) return ['every error is retry'];
  return [
    ...(errorRules.length > 0 ? [`onError has rules for ${errorRules.join(', ')}`] : []),
    ...outageRules.map(({ dependency, errors }) =>
      errors.length > 0
        ? `${dependency} is down: ${errors.join(', ')}`
        : `waits along while another handler finds ${dependency} down`,
    ),
    'every other error is retry',
  ];
}

function deliveriesLine({ maxDeliveries, timeoutMs, abandonAfterMs, ackTimeoutMs }: Explained): string {
  const most = `${maxDeliveries} at most`;
  const asked = ackTimeoutMs === undefined ? '' : `; one that runs for ${durationText(ackTimeoutMs)} is asked back`;
  if (timeoutMs === undefined) return `${most}, runs without a time limit${asked}`;
  return `${most}, runs of at most ${durationText(timeoutMs)}, and ${durationText(abandonAfterMs)} more to end${asked}`;
}

/** Waits that are alike in a row share a line. */
function waitLines(explained: Explained): readonly string[] {
  if (explained.waits.length === 0) return ['none: a message is delivered once'];
  const lines: string[] = [];
  let start = 0;
  explained.waits.forEach((wait, i) => {
    const next = explained.waits[i + 1];
    if (next !== undefined && isSameWait(wait, next)) return;
    const first = explained.waits[start]?.afterDelivery ?? 1;
    const which = first === wait.afterDelivery ? `delivery ${first}` : `deliveries ${first} to ${wait.afterDelivery}`;
    lines.push(`after ${which}: ${rangeText(wait)}, ${waitWords(wait, explained)}`);
    start = i + 1;
  });
  const unlisted = explained.maxDeliveries - 1 - explained.waits.length;
  return unlisted > 0 ? [...lines, `and ${unlisted} more`] : lines;
}

function isSameWait(a: WaitExplanation, b: WaitExplanation): boolean {
  const sameStrategies = a.strategies.join() === b.strategies.join();
  return a.minMs === b.minMs && a.maxMs === b.maxMs && sameStrategies && failed(a) === failed(b);
}

function failed({ policyFailure }: WaitExplanation): boolean {
  return policyFailure !== undefined;
}

function waitWords(wait: WaitExplanation, explained: Explained): string {
  const words = wait.strategies.map((strategy) => strategyWords(strategy, explained)).join(' or ');
  const held = isLongHold(wait, explained) ? ' (long, but there is no retry letter topic)' : '';
  const failure = failed(wait) ? ` (the default: ${wait.policyFailure ?? ''})` : '';
  return words + held + failure;
}

function strategyWords(strategy: RedeliveryStrategy, { ordering, orderedNegativeAck }: Explained): string {
  const words = STRATEGY_WORDS[strategy];
  if (strategy !== 'hold' || ordering === 'none' || orderedNegativeAck === 'required') return words;
  return `${words} where the broker keeps the order of its key, else kept in place`;
}

/** Whether a wait is held only because the handler has no retry letter topic. */
function isLongHold({ maxMs }: WaitExplanation, { type, ordering, retryLetters, longestHoldMs }: Explained): boolean {
  return retryLetters.length === 0 && redeliversSingly(type) && ordering === 'none' && maxMs > longestHoldMs;
}

/** The waits of a policy by how they wait: `held by id (1 s to 8 min 32 s), published again (17 min 4 s)`. */
function strategiesLine(explained: HandlerExplanation): string {
  const byWords = new Map<string, WaitExplanation[]>();
  for (const wait of explained.waits) {
    const words = waitWords({ ...wait, policyFailure: undefined }, explained);
    byWords.set(words, [...(byWords.get(words) ?? []), wait]);
  }
  if (byWords.size === 0) return 'none: a message is delivered once';
  const parts = [...byWords].map(([words, waits]) => {
    const minMs = Math.min(...waits.map((wait) => wait.minMs));
    const maxMs = Math.max(...waits.map((wait) => wait.maxMs));
    return `${words} (${rangeText({ minMs, maxMs })})`;
  });
  const failure = explained.waits.find(failed)?.policyFailure;
  return parts.join(', ') + (failure === undefined ? '' : `; the default where the policy fails: ${failure}`);
}

function deferralsLine({ retryLetters, longestHoldMs }: Explained): string {
  if (retryLetters.length === 0) return 'kept in place';
  return `kept in place; longer than ${durationText(longestHoldMs)}, published again to ${retryLetters.join(', ')}`;
}

function delayLine({ delayedDelivery, type, ordering, keptByBroker }: Explained): string {
  const single = redeliversSingly(type);
  if (keptByBroker === 'none')
    return delayedDelivery === 'client'
      ? 'kept in place until then'
      : 'not waited for: brokers deliver at once what is not persistent';
  if (delayedDelivery === 'client')
    return single && ordering === 'none' ? 'held by id until then' : 'kept in place until then';
  return single ? 'kept by the broker until then' : `not waited for: brokers deliver at once on ${type}`;
}

function limitLine({ maxHeld, retryLetters, delayedDelivery }: Explained): string {
  const beyond =
    retryLetters.length === 0 || delayedDelivery === 'client'
      ? 'the subscription pauses'
      : 'further waits are published again, however short';
  return `${counted(maxHeld, 'message')} waiting here; then ${beyond}`;
}

function givenUpLines(explained: Explained): string[] {
  const lines = deadLetterLines(explained);
  return explained.onDeadLetter === 'continue'
    ? lines
    : ['kept unacknowledged, and its key waits, until a person releases it or skips it; then', ...lines];
}

function deadLetterLines({
  deadLetter,
  deadLetters,
  deadLetterSubscription,
  onDeadLetterRefused,
}: Explained): string[] {
  if (deadLetter === 'skip') return ['acknowledged without a dead letter: the message is gone'];
  if (deadLetter === 'block') return ['kept unacknowledged until a restart, no dead letter'];
  const kept =
    deadLetterSubscription === undefined
      ? 'kept only for subscriptions that others make'
      : `kept for subscription ${deadLetterSubscription}`;
  const rule =
    typeof onDeadLetterRefused === 'object'
      ? `goes to ${onDeadLetterRefused.fallbackTopic}`
      : { hold: 'is tried again, and its message stays', function: 'is decided by its onDeadLetterRefused' }[
          onDeadLetterRefused
        ];
  return [`dead letter to ${deadLetters.join(', ')}, ${kept}`, `a dead letter that is refused for good ${rule}`];
}

function worstCaseLine({ worstCaseMs, timeoutMs, maxDeliveries, waits }: Explained): string {
  if (worstCaseMs === undefined) return `no time is worked out for ${maxDeliveries} deliveries`;
  const parts = [
    ...(waits.length > 0 || worstCaseMs > 0 ? [durationText(worstCaseMs)] : []),
    ...(timeoutMs === undefined ? [`the time of ${counted(maxDeliveries, 'run')}`] : []),
  ];
  return `at most ${parts.join(' and ')} after the first delivery began; deferrals, outages, pauses, waiting for a free slot, and delays that an outcome names itself come on top`;
}

function rangeText({ minMs, maxMs }: Pick<WaitExplanation, 'minMs' | 'maxMs'>): string {
  return minMs === maxMs ? durationText(minMs) : `${durationText(minMs)} to ${durationText(maxMs)}`;
}

function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
