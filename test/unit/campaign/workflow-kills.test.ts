// The checks of `workflow-kills`, on ends and ledgers that are made up: each finds what it is for.
import { expect, it } from 'vitest';
import type { JournalEntry } from '../../../src/workflow.js';
import type { EndedWorkflow } from '../../support/workflow-kills/kills-judge.js';
import { judgedKills } from '../../support/workflow-kills/kills-judge.js';
import type { Effect } from '../../support/workflow-kills/kills-plan.js';

/** `w0` is an order that completes. */
const COUNT = 1;
const KEY = 'fulfil-order/w0/1';

function command(at: number, kind: 'step' | 'compensate' | 'publish', name: string): JournalEntry {
  return { kind: 'command', at, command: kind, name, atMs: 0 };
}

function attempt(at: number, number = 1): JournalEntry {
  return { kind: 'attempt', at, attempt: number, atMs: 0 };
}

function done(at: number): JournalEntry {
  return { kind: 'completed', at, atMs: 0 };
}

function effect(at: number, what: string, number = 1): Effect {
  return { key: `${KEY}/${at}`, attempt: number, what };
}

const JOURNAL = [
  ...[command(0, 'step', 'charge'), attempt(0), attempt(0, 2), done(0)],
  ...[command(1, 'step', 'reserve'), attempt(1), done(1)],
  ...[command(2, 'publish', 'receipts'), done(2)],
];
const EFFECTS = [effect(0, 'charge w0'), effect(0, 'charge w0', 2), effect(1, 'reserve w0')];
const UNDONE = [
  ...JOURNAL.slice(0, 7),
  ...[command(2, 'compensate', 'reserve'), attempt(2), done(2)],
  ...[command(3, 'compensate', 'charge'), attempt(3), done(3)],
];
const UNDOING = [effect(2, 'release w0'), effect(3, 'refund w0')];

function ended(journal: readonly JournalEntry[], more: object = {}): EndedWorkflow {
  const record = {
    name: 'fulfil-order',
    id: 'w0',
    run: 1,
    status: 'completed',
    result: { orderId: 'w0', chargeId: 'ch-w0' },
  };
  return { record: { ...record, ...more } as EndedWorkflow['record'], journal };
}

function judged(
  journal: readonly JournalEntry[] = JOURNAL,
  effects: readonly Effect[] = EFFECTS,
  more: object = {},
  receipts: readonly string[] = [`workflow/${KEY}/2`],
): readonly string[] {
  return judgedKills(COUNT, [ended(journal, more)], { effects, receipts });
}

it('finds nothing where all is right, an attempt that was cut and repeated included', () => {
  expect(judged()).toEqual([]);
});

it('finds a workflow that is not there, one that has not ended, another end and another result', () => {
  expect(judgedKills(COUNT, [], { effects: [], receipts: [] })).toEqual(['fulfil-order w0 is not there']);
  expect(judged(JOURNAL, EFFECTS, { status: 'blocked' })).toContainEqual(expect.stringContaining('has not ended'));
  expect(judged(JOURNAL, EFFECTS, { status: 'terminated' })).toContainEqual(
    expect.stringContaining('right is completed'),
  );
  expect(judged(JOURNAL, EFFECTS, { result: 1 })).toEqual([
    expect.stringContaining('the result of fulfil-order w0 is 1'),
  ]);
});

it('finds a step that ran again after its end was recorded', () => {
  expect(judged([...JOURNAL, attempt(1, 2)])).toEqual([`attempt 2 of ${KEY}/1 began after its end was recorded`]);
  expect(judged([...JOURNAL, done(1)])).toContainEqual('command 1 of fulfil-order w0 has two ends');
  expect(judged(JOURNAL, [...EFFECTS, effect(1, 'reserve w0', 2)])).toEqual([
    `"reserve w0" was done in attempt 2 of ${KEY}/1, which is not recorded`,
  ]);
  expect(judged(JOURNAL, [...EFFECTS, effect(1, 'reserve w0')])).toEqual([
    `"reserve w0" was done twice in attempt 1 of ${KEY}/1`,
  ]);
});

it('a handler may do its work twice for one attempt, since its delivery comes again', () => {
  expect(judged(JOURNAL, [...EFFECTS, { ...effect(1, 'reserve w0'), remote: true }])).toEqual([]);
});

it('finds what was done by a step without a recorded end, but for one that was given up by a cancellation', () => {
  const failed: JournalEntry = {
    kind: 'attempt-failed',
    at: 3,
    attempt: 1,
    atMs: 0,
    spent: true,
    nextMs: 9,
    error: { name: 'E', message: 'm' },
  };
  const open = [...JOURNAL, command(3, 'step', 'more'), attempt(3), failed];
  const effects = [...EFFECTS, effect(3, 'more w0')];
  expect(judged(open, effects)).toEqual([`"more w0" was done, and the end of ${KEY}/3 is not recorded`]);
  expect(judged([...open, { kind: 'cancelled', atMs: 0 }], effects)).toEqual([]);
});

it('finds what was not undone, was undone in another order, or in a workflow that completed', () => {
  const w0 = { status: 'failed' };
  const undone = (journal = UNDONE, undoing: readonly Effect[] = UNDOING) =>
    judged(journal, [...EFFECTS, ...undoing], w0, []).filter((problem) => !problem.includes('right is completed'));
  expect(undone()).toEqual([]);
  expect(undone(UNDONE.slice(0, -3), UNDOING.slice(0, 1))).toEqual([
    'fulfil-order w0, failed, has undone reserve; right is reserve, charge',
  ]);
  expect(undone(UNDONE, [UNDOING[1]!, UNDOING[0]!])).toEqual([
    'fulfil-order w0 was undone in another order than its journal says',
  ]);
  expect(undone(UNDONE, [effect(2, 'refund w0'), effect(3, 'release w0')])).toHaveLength(1);
  expect(judged(UNDONE, [...EFFECTS, ...UNDOING], {}, [])).toEqual([
    'fulfil-order w0, completed, has undone reserve, charge; right is ',
  ]);
});

it('finds a message that did not come, and one that nobody sent', () => {
  expect(judged(JOURNAL, EFFECTS, {}, [])).toEqual([expect.stringContaining('receipts  came')]);
  expect(judged(JOURNAL, EFFECTS, {}, [`workflow/${KEY}/2`, `workflow/${KEY}/2`])).toEqual([]);
  expect(judged(JOURNAL, EFFECTS, {}, [`workflow/${KEY}/2`, 'other'])).toHaveLength(1);
});
