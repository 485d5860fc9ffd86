// What `ordering-kills` calls a violation: each rule on facts that break it and it alone.
import { expect, it } from 'vitest';
import { orderedViolations } from '../../campaign/ordering-kills-checks.js';
import type { OrderedEvent, OrderedFacts } from '../../campaign/ordering-kills-checks.js';
import { orderedPlan } from '../../campaign/ordering-kills-plan.js';
import { JOB_KINDS } from '../../support/ordered/ordered-jobs.js';
import type { OrderedJob } from '../../support/ordered/ordered-jobs.js';

const JOBS: readonly OrderedJob[] = [
  { n: 0, key: 'a', kind: 'plain', takesMs: 1 },
  { n: 1, key: 'b', kind: 'plain', takesMs: 1 },
  { n: 2, key: 'a', kind: 'flaky', takesMs: 1 },
  { n: 3, key: 'a', kind: 'poisoned', takesMs: 1 },
];

/** Lines as `process word number detail`, a millisecond apart. A run of `n` has the position `p<n>`. */
function events(...lines: readonly string[]): readonly OrderedEvent[] {
  return lines.map((line, atMs) => {
    const [life, word, n, detail = `p${n}`] = line.split(' ');
    return { atMs, life: Number(life), word: word as OrderedEvent['word'], n: Number(n), detail };
  });
}

const whole = (life: number, n: number): readonly string[] => [
  `${life} run ${n}`,
  `${life} end ${n} final`,
  `${life} settled ${n} final`,
];
const B = whole(0, 1);

const violations = (lines: readonly string[], facts: Partial<OrderedFacts> = {}): readonly string[] =>
  orderedViolations({
    ...{ jobs: JOBS, events: events(...lines), killedMs: new Map(), letters: new Set([3]), backlog: 0 },
    ...facts,
  }).map((text) => text.split('\n')[0] ?? '');

it('nothing when each key went one by one, with a retry, and other keys at the same time', () => {
  const retried = ['0 run 2', '0 end 2 open', '0 settled 2 open', ...whole(0, 2)];
  expect(
    violations(['0 run 0', '0 run 1', '0 end 0 final', '0 settled 0 final', ...retried, ...whole(0, 3), ...B.slice(1)]),
  ).toEqual([]);
});

it('nothing when a killed process left a run, or an acknowledgement that nobody heard of', () => {
  const first = ['0 run 0', '0 end 0 final'];
  expect(violations([...first, ...whole(1, 2), ...whole(1, 3), ...B], { killedMs: new Map([[0, 2]]) })).toEqual([]);
  const cut = ['0 run 0', ...whole(1, 0), ...whole(1, 2), ...whole(1, 3), ...B];
  expect(violations(cut, { killedMs: new Map([[0, 1]]) })).toEqual([]);
});

it('nothing when what was resolved comes again after a kill, and what follows it as well', () => {
  const before = [...whole(0, 0), '0 run 2', '0 end 2 final'];
  const again = [...whole(1, 0), ...whole(1, 2), ...whole(1, 3), ...B];
  expect(violations([...before, ...again], { killedMs: new Map([[0, 5]]) })).toEqual([]);
});

it.each<[string, readonly string[], string]>([
  ['a message before one that never ran', [...whole(0, 2)], 'key a: 2 started before 0 ever did'],
  [
    'a message before one that failed has run again',
    ['0 run 0', '0 end 0 open', '0 settled 0 open', ...whole(0, 2)],
    'key a: 2 started although 0 was not resolved (settled in process 0)',
  ],
  [
    'a message while one before it runs in another process',
    ['0 run 0', ...whole(1, 2)],
    'key a: 2 started although 0 was not resolved (run in process 0)',
  ],
  [
    'a message before the settlement of the one before it in its own process',
    ['0 run 0', '0 end 0 final', ...whole(0, 2)],
    'key a: 2 started although 0 was not settled yet',
  ],
  ['a message that overlaps itself', ['0 run 0', ...whole(1, 0)], 'key a: 0 started while 0 ran in process 0'],
  [
    'a message that comes again while a later one runs',
    [...whole(0, 0), '0 run 2', '1 run 0'],
    'key a: 0 started while 2 ran in process 0',
  ],
  [
    'positions that do not sort as the messages were published',
    [...whole(0, 0), '0 run 2 a'],
    'key a: the position of 2 does not sort as that of 0',
  ],
])('finds %s', (_, lines, expected) => {
  expect(violations(lines)).toContain(expected);
});

it('finds what is lost, given up, or left', () => {
  const done = [...whole(0, 0), ...whole(0, 2), ...whole(0, 3), ...B];
  expect(violations(done)).toEqual([]);
  expect(violations(done.filter((line) => !line.includes(' 1')))).toEqual(['key b: 1 (plain) was never done']);
  expect(violations(done, { letters: new Set() })).toEqual(['key a: 3 (poisoned) is gone without a dead letter']);
  expect(violations(done, { letters: new Set([2, 3]) })).toEqual(['key a: 2 (flaky) is a dead letter']);
  expect(violations(done, { backlog: 2 })).toEqual(['a backlog of 2 is left']);
});

it('shows the log of the key up to the violation', () => {
  const [text] = orderedViolations({
    ...{ jobs: JOBS, killedMs: new Map(), letters: new Set([3]), backlog: 0 },
    events: events('0 run 0', '1 run 1', ...whole(1, 2)),
  });
  expect(text?.split('\n').slice(1)).toEqual([
    '            0.0 ms, process 0: run 0 p0',
    '            2.0 ms, process 1: run 2 p2',
  ]);
});

it('makes the same plan of the same seed, with every kind of job and step among a few', () => {
  expect(orderedPlan(7)).toEqual(orderedPlan(7));
  const plans = Array.from({ length: 5 }, (_, seed) => orderedPlan(seed + 1));
  expect(new Set(plans.flatMap(({ jobs }) => jobs.map(({ kind }) => kind)))).toEqual(new Set(JOB_KINDS));
  expect(new Set(plans.flatMap(({ steps }) => steps.map(({ kind }) => kind)))).toEqual(
    new Set(['kill', 'drain', 'join']),
  );
  for (const { jobs } of plans) expect(jobs.filter(({ key }) => key === 'hot').length).toBeGreaterThan(20);
});
