// What must hold after a run of `wire-cuts`, decided on what was published, what came, and what the broker says.
import type { MessageId } from '../../src/core/message-id.js';
import { formatMessageId } from '../../src/core/message-id.js';
import type { Arrival } from '../support/counting-consumer.js';
import type { CutPlan } from './wire-cuts-plan.js';

/** A message, and its receipt or why there is none. */
export interface Published {
  readonly text: string;
  readonly receipt: MessageId | Error;
}

/** The broker's word on one topic or partition, once nothing moves any more. */
export interface TopicFigures {
  readonly backlog: number | undefined;
  readonly unacknowledged: number | undefined;
  /** Of each consumer. */
  readonly permits: readonly number[];
  readonly publishers: number;
}

export interface CutFacts {
  /** In the order of publishing. */
  readonly published: readonly Published[];
  /** In the order of coming, each copy by itself. */
  readonly arrivals: readonly Arrival[];
  readonly topics: readonly TopicFigures[];
  /** How many connections were lost. */
  readonly cuts: number;
}

/** How many of a kind a report shows. */
const SHOWN = 5;

export function cutViolations(plan: CutPlan, facts: CutFacts): readonly string[] {
  return [
    ...(facts.cuts === 0 ? ['no connection was cut: the run has shown nothing'] : []),
    ...withoutReceipt(facts),
    ...lost(facts),
    ...misplaced(facts),
    ...(plan.deduplicates ? storedTwice(facts) : []),
    ...outOfOrder(plan, facts),
    ...facts.topics.flatMap((figures, index) => wrongFigures(plan, figures, index)),
  ];
}

function withoutReceipt({ published }: CutFacts): readonly string[] {
  const failed = published.flatMap(({ text, receipt }) => (receipt instanceof Error ? [{ text, receipt }] : []));
  return some(failed, 'published without a receipt', ({ text, receipt }) => `${text} (${receipt.message})`);
}

function lost({ published, arrivals }: CutFacts): readonly string[] {
  const came = new Set(arrivals.map(({ text }) => text));
  const missing = published.filter(({ text, receipt }) => !(receipt instanceof Error) && !came.has(text));
  return some(missing, 'published with a receipt but never received', ({ text }) => text);
}

/** Where a receipt says that a message is, it is: unless the broker had it before and named no place. */
function misplaced({ published, arrivals }: CutFacts): readonly string[] {
  const places = new Map<string, Set<string>>();
  for (const { text, id } of arrivals) places.set(text, (places.get(text) ?? new Set()).add(formatMessageId(id)));
  const wrong = published.filter(({ text, receipt }) => {
    if (receipt instanceof Error || receipt.ledgerId < 0) return false;
    return places.get(text)?.has(formatMessageId(receipt)) === false;
  });
  return some(wrong, 'not at the place that the receipt names', ({ text, receipt }) => {
    const came = [...(places.get(text) ?? [])].join(' and ');
    return `${text} (receipt ${formatMessageId(receipt as MessageId)}, received from ${came})`;
  });
}

function storedTwice({ arrivals }: CutFacts): readonly string[] {
  const places = new Map<string, Set<string>>();
  for (const { text, id } of arrivals) places.set(text, (places.get(text) ?? new Set()).add(formatMessageId(id)));
  const twice = [...places].filter(([, each]) => each.size > 1);
  return some(
    twice,
    'stored twice by a broker that deduplicates',
    ([text, each]) => `${text} (${[...each].join(', ')})`,
  );
}

/**
 * First copies come in the order of publishing: per partition where one consumer reads in order, per key on Key_Shared.
 * Shared promises no order.
 */
function outOfOrder(plan: CutPlan, { published, arrivals }: CutFacts): readonly string[] {
  if (plan.type === 'shared') return [];
  const positions = new Map(published.map(({ text }, index) => [text, index]));
  const last = new Map<string, number>();
  const seen = new Set<string>();
  const late: string[] = [];
  for (const { text, key, id } of arrivals) {
    if (seen.has(text)) continue;
    seen.add(text);
    const lane = plan.type === 'key-shared' ? `key ${key}` : `partition ${id.partition}`;
    const position = positions.get(text) ?? -1;
    if (position < (last.get(lane) ?? -1)) late.push(`${text} of ${lane}`);
    last.set(lane, Math.max(position, last.get(lane) ?? -1));
  }
  return some(late, 'came after a later one', (text) => text);
}

function wrongFigures(plan: CutPlan, figures: TopicFigures, index: number): readonly string[] {
  const violations: string[] = [];
  const where = plan.partitions === 0 ? 'the topic' : `partition ${index}`;
  if (figures.backlog !== 0) violations.push(`${where} has a backlog of ${figures.backlog ?? 'nobody knows how many'}`);
  if (figures.unacknowledged !== 0) violations.push(`${where} has ${figures.unacknowledged ?? '?'} unacknowledged`);
  if (figures.publishers !== 1) violations.push(`${where} has ${figures.publishers} publishers`);
  if (figures.permits.length !== 1) violations.push(`${where} has ${figures.permits.length} consumers`);
  const share = shareOf(plan);
  // Permits are granted in lots of half the share: what is not granted yet is less than one.
  for (const permits of figures.permits)
    if (permits <= share / 2 || permits > share) violations.push(`${where} has ${permits} permits of ${share}`);
  return violations;
}

export function shareOf({ prefetch, partitions }: CutPlan): number {
  return Math.floor(prefetch / Math.max(1, partitions));
}

function some<T>(list: readonly T[], what: string, text: (each: T) => string): readonly string[] {
  if (list.length === 0) return [];
  const shown = list.slice(0, SHOWN).map(text).join(', ');
  return [`${list.length} ${what}: ${shown}${list.length > SHOWN ? ', ...' : ''}`];
}
