// Whether two brokers gave the same after an action: what came, who is active, the backlog, and what is unacknowledged.
import type { Action } from './actions.js';
import type { SeenArrival } from './arrivals.js';
import type { SubscriptionFigures } from './differential-world.js';
import type { Freedom } from './freedom.js';
import { freedomOf } from './freedom.js';
import type { Observation, SubscriptionView } from './program-run.js';
import type { SubscriptionPlan } from './program.js';

/** A sentence for each thing that differs. */
export function differences(action: Action, embedded: Observation, pulsar: Observation): readonly string[] {
  if (embedded.outcome !== pulsar.outcome) return [unequal('the outcome', embedded.outcome, pulsar.outcome)];
  return embedded.subscriptions.flatMap((ours, sub) => {
    const { plan } = ours;
    const theirs = pulsar.subscriptions[sub]!;
    const freedom = freedomOf(plan, ours.consumersBefore, sub, action);
    const pairs = [...arrivalsOf(freedom, ours, theirs), ...figuresOf(plan, freedom, ours.figures, theirs.figures)];
    const active = ['who is active', ours.activeSlots.join(), theirs.activeSlots.join()] as const;
    const found = [...pairs, active].filter(([, a, b]) => a !== b).map((pair) => unequal(...pair));
    return found.map((text) => `s${sub + 1} (${plan.type}, ${plan.flow}): ${text}`);
  });
}

/** Whether as many connections were made: a consumer that is not back yet cannot do what comes next. */
export function areConnected(embedded: Observation, pulsar: Observation): boolean {
  return embedded.subscriptions.every(({ connections }, sub) =>
    connections.every((count, i) => (pulsar.subscriptions[sub]?.connections[i] ?? 0) >= count),
  );
}

type Pair = readonly [what: string, embedded: string, pulsar: string];

function arrivalsOf(freedom: Freedom, ours: SubscriptionView, theirs: SubscriptionView): readonly Pair[] {
  switch (freedom) {
    case 'sequence':
      return [['what came', bySlot(ours.arrivals), bySlot(theirs.arrivals)]];
    case 'newest':
      return [['what is held', bySlot(ours.held), bySlot(theirs.held)]];
    case 'anyone':
      return [
        ['what is held', sorted(ours.held), sorted(theirs.held)],
        ['what came', sorted(ours.arrivals), sorted(theirs.arrivals)],
      ];
    case 'held':
      return [['what is held', sorted(ours.held), sorted(theirs.held)]];
    case 'swept':
      return [['what came', sorted(ours.arrivals), sorted(theirs.arrivals)]];
  }
}

function figuresOf(
  { type }: SubscriptionPlan,
  freedom: Freedom,
  ours: SubscriptionFigures | undefined,
  theirs: SubscriptionFigures | undefined,
): readonly Pair[] {
  // After a seek to the earliest message of a topic whose ledgers are all removed, Pulsar 4.0.7 counts what was in the last of
  // them until something is published. There is nothing to be left, and nothing comes.
  const backlog: readonly Pair[] =
    ours?.isEmptied === true ? [] : [['the backlog', String(ours?.backlog), String(theirs?.backlog)]];
  // Pulsar keeps no list of what it sent on Exclusive and Failover, and says 0: there is nothing to compare with.
  if (type === 'exclusive' || type === 'failover') return backlog;
  const unacked: Pair = ['what is unacknowledged', String(ours?.unacked), String(theirs?.unacked)];
  // Where it is open who holds what, the sum is all that there is.
  if (freedom !== 'sequence') return [...backlog, unacked];
  return [...backlog, unacked, ['who holds how much', byConsumer(ours), byConsumer(theirs)]];
}

function bySlot(arrivals: readonly SeenArrival[]): string {
  const slots = [...new Set(arrivals.map(({ slot }) => slot))].sort();
  const ofSlot = (slot: number): string =>
    arrivals
      .filter((each) => each.slot === slot)
      .map(({ text }) => text)
      .join(', ');
  return slots.map((slot) => `at ${slot}: ${ofSlot(slot)}`).join('; ');
}

function sorted(arrivals: readonly SeenArrival[]): string {
  return arrivals
    .map(({ text }) => text)
    .sort()
    .join(', ');
}

function byConsumer(figures: SubscriptionFigures | undefined): string {
  const consumers = (figures?.consumers ?? []).map(({ name, unacked }) => `${name}: ${unacked}`);
  return consumers.sort().join(', ');
}

function unequal(what: string, embedded: string, pulsar: string): string {
  return `${what}: embedded [${embedded}], Pulsar [${pulsar}]`;
}
