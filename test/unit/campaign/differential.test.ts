// The differential campaign itself, without a real broker: programs come from their seeds, the comparison sees what differs
// and leaves open only what Pulsar does, and a program that differs is made short.
import { expect, it } from 'vitest';
import { differences } from '../../support/differential/comparison.js';
import { onEmbedded } from '../../support/differential/differential-run.js';
import { freedomOf } from '../../support/differential/freedom.js';
import type { Observation, SubscriptionView } from '../../support/differential/program-run.js';
import type { Step, SubscriptionPlan } from '../../support/differential/program.js';
import { programFrom } from '../../support/differential/program.js';
import { shrunk } from '../../support/differential/shrink.js';

const TOPIC = 'persistent://public/default/t';
const UNLOAD = { step: { do: 'unload' }, texts: [], slot: -1 } as const;

const wide = (type: SubscriptionPlan['type']): SubscriptionPlan => ({
  type,
  initialPosition: 'earliest',
  flow: 'wide',
});

function view(change: Partial<SubscriptionView> = {}): SubscriptionView {
  const figures = { backlog: 2, unacked: 2, consumers: [{ name: 'consumer-1', unacked: 2 }] };
  const arrivals = [
    { slot: 0, text: 'm01 #0' },
    { slot: 0, text: 'm02 #0' },
  ];
  return {
    plan: wide('shared'),
    arrivals,
    held: arrivals,
    consumersBefore: 1,
    activeSlots: [],
    connections: [1],
    figures,
    ...change,
  };
}

function found(type: SubscriptionPlan['type'], ours: SubscriptionView, theirs: SubscriptionView): readonly string[] {
  const publish = { step: { do: 'publish', messages: [{}] }, texts: ['m01'], slot: -1 } as const;
  const observation = (seen: SubscriptionView): Observation => ({
    outcome: 'done',
    subscriptions: [{ ...seen, plan: wide(type) }],
  });
  return differences(publish, observation(ours), observation(theirs));
}

it('makes the same program of the same seed, and others of others', () => {
  expect(programFrom(7)).toEqual(programFrom(7));
  expect(new Set(Array.from({ length: 50 }, (_, seed) => JSON.stringify(programFrom(seed)))).size).toBe(50);
});

it('programs have every kind of step, every type and both flows', () => {
  const programs = Array.from({ length: 50 }, (_, seed) => programFrom(seed));
  const kinds = new Set(programs.flatMap(({ steps }) => steps.map((step) => step.do)));
  const plans = programs.flatMap(({ subscriptions }) => subscriptions);

  expect([...kinds].sort()).toEqual(
    [
      'ack',
      'ack-again',
      'ack-all',
      'ack-up-to',
      'batch',
      'close',
      'consume',
      'finish',
      'nack',
      'open',
      'publish',
    ].concat(['seek', 'unload']),
  );
  expect(new Set(plans.map(({ type, flow }) => `${type} ${flow}`)).size).toBe(8);
});

it('a program on the embedded broker is seen the same each time, and leaves nothing', async () => {
  for (let seed = 1; seed <= 6; seed++) {
    const program = programFrom(seed);
    const once = await onEmbedded(program, TOPIC);

    expect(await onEmbedded(program, TOPIC)).toEqual(once);
    expect(once.at(-1)?.seen.subscriptions.map(({ figures }) => figures?.backlog)).toEqual(
      program.subscriptions.map(() => 0),
    );
  }
});

it('sees what is missing, what came twice, another order, another count, another backlog', () => {
  const [first, second] = view().arrivals;
  const others: readonly Partial<SubscriptionView>[] = [
    { arrivals: [first!] },
    { arrivals: [first!, second!, second!] },
    { arrivals: [second!, first!] },
    { arrivals: [first!, { slot: 0, text: 'm02 #1' }] },
    { figures: { ...view().figures!, backlog: 1 } },
    { figures: { ...view().figures!, unacked: 1 } },
    { figures: undefined },
  ];

  expect(found('shared', view(), view())).toEqual([]);
  for (const other of others) expect(found('shared', view(), view(other)), JSON.stringify(other)).not.toEqual([]);
});

it('of several Shared consumers anyone may get a message, of several Key_Shared ones only its own', () => {
  const both = { consumersBefore: 2, figures: undefined };
  const elsewhere = view().arrivals.map(({ text }) => ({ slot: 1, text }));
  const theirs = view({ ...both, arrivals: elsewhere, held: elsewhere });

  expect(found('shared', view(both), theirs)).toEqual([]);
  expect(found('key-shared', view(both), theirs)).toHaveLength(1);
  expect(found('shared', view(both), view({ ...both, arrivals: [], held: [] }))).not.toEqual([]);
});

it('one consumer alone leaves nothing open', () => {
  const types = ['exclusive', 'failover', 'shared', 'key-shared'] as const;

  expect(types.map((type) => freedomOf(wide(type), 1, 0, UNLOAD))).toEqual(types.map(() => 'sequence'));
});

it('makes a program as short as it still differs', async () => {
  const { subscriptions, steps } = programFrom(3);
  const isNack = (step: Step): boolean => step.do === 'ack-all' || step.do === 'finish';
  const wanted = steps.filter(isNack);

  const short = await shrunk(
    { subscriptions, steps },
    async (shorter) => wanted.every((step) => shorter.steps.includes(step)),
    500,
  );

  expect(short.steps).toEqual(wanted);
});
