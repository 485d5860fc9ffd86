// What `wire-cuts` calls a violation: each rule on facts that break it and it alone.
import { expect, it } from 'vitest';
import type { MessageId } from '../../../src/core/message-id.js';
import { cutViolations } from '../../campaign/wire-cuts-checks.js';
import type { CutFacts } from '../../campaign/wire-cuts-checks.js';
import { cutPlan } from '../../campaign/wire-cuts-plan.js';
import type { CutPlan } from '../../campaign/wire-cuts-plan.js';

const PLAN: CutPlan = { ...cutPlan(1), type: 'exclusive', partitions: 0, deduplicates: true, prefetch: 10 };
const id = (entryId: number): MessageId => ({
  ledgerId: 1,
  entryId,
  partition: -1,
  batchIndex: -1,
  batchSize: 0,
  topic: 't',
});
const arrival = (number: number, key = 'k', entryId = number) => ({ text: `m${number}`, key, id: id(entryId) });
const FIGURES = { backlog: 0, unacknowledged: 0, permits: [10], publishers: 1 };
const GOOD: CutFacts = {
  published: [0, 1, 2].map((number) => ({ text: `m${number}`, receipt: id(number) })),
  arrivals: [0, 1, 2].map((number) => arrival(number)),
  topics: [FIGURES],
  cuts: 1,
};

const violations = (facts: Partial<CutFacts>, plan: Partial<CutPlan> = {}) =>
  cutViolations({ ...PLAN, ...plan }, { ...GOOD, ...facts });

it('nothing when all came in order, copies among it', () => {
  expect(violations({ arrivals: [arrival(0), arrival(1), arrival(0), arrival(1), arrival(2)] })).toEqual([]);
});

it.each<[string, Partial<CutFacts>, readonly string[]]>([
  ['a run without a cut', { cuts: 0 }, ['no connection was cut: the run has shown nothing']],
  [
    'a message without a receipt',
    { published: [...GOOD.published, { text: 'm3', receipt: new Error('refused') }] },
    ['1 published without a receipt: m3 (refused)'],
  ],
  ['a lost message', { arrivals: [arrival(0), arrival(2)] }, ['1 published with a receipt but never received: m1']],
  [
    'a receipt that names another place',
    { published: [...GOOD.published.slice(0, 2), { text: 'm2', receipt: id(9) }] },
    ['1 not at the place that the receipt names: m2 (receipt 1:9:-1, received from 1:2:-1)'],
  ],
  [
    'a message that is stored twice',
    { arrivals: [...GOOD.arrivals, arrival(2, 'k', 3)] },
    ['1 stored twice by a broker that deduplicates: m2 (1:2:-1, 1:3:-1)'],
  ],
  [
    'one that came after a later one',
    { arrivals: [arrival(0), arrival(2), arrival(1)] },
    ['1 came after a later one: m1 of partition -1'],
  ],
  ['a backlog', { topics: [{ ...FIGURES, backlog: 2 }] }, ['the topic has a backlog of 2']],
  ['what is not acknowledged', { topics: [{ ...FIGURES, unacknowledged: 1 }] }, ['the topic has 1 unacknowledged']],
  ['a publisher too many', { topics: [{ ...FIGURES, publishers: 2 }] }, ['the topic has 2 publishers']],
  ['a consumer too many', { topics: [{ ...FIGURES, permits: [10, 10] }] }, ['the topic has 2 consumers']],
  ['permits too many', { topics: [{ ...FIGURES, permits: [11] }] }, ['the topic has 11 permits of 10']],
  ['permits too few', { topics: [{ ...FIGURES, permits: [5] }] }, ['the topic has 5 permits of 10']],
])('%s', (_, facts, expected) => {
  expect(violations(facts)).toEqual(expected);
});

it('a receipt without a place says nothing: the broker had the message before', () => {
  const published = [...GOOD.published.slice(0, 2), { text: 'm2', receipt: { ...id(-1), ledgerId: -1 } }];

  expect(violations({ published })).toEqual([]);
});

it('order counts per key on Key_Shared, and not at all on Shared', () => {
  const arrivals = [arrival(0, 'a'), arrival(2, 'b'), arrival(1, 'a')];
  const late = [arrival(1, 'a'), arrival(0, 'a'), arrival(2, 'b')];

  expect(violations({ arrivals }, { type: 'key-shared' })).toEqual([]);
  expect(violations({ arrivals: late }, { type: 'key-shared' })).toEqual(['1 came after a later one: m0 of key a']);
  expect(violations({ arrivals: late }, { type: 'shared' })).toEqual([]);
});

it('a broker that does not deduplicate may store a message twice', () => {
  expect(violations({ arrivals: [...GOOD.arrivals, arrival(2, 'k', 3)] }, { deduplicates: false })).toEqual([]);
});
