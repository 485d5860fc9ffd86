// Every metric by name, unit and meaning. docs/observability.md has the same list; a test compares the two.
import type { Histogram, Meter, MetricOptions, Observable } from '@opentelemetry/api';
import { DURATION_BOUNDARIES } from './semconv.js';

interface Description {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

/** Counted in plain numbers and read when metrics are collected. */
export const COUNTERS = {
  sent: described('messaging.client.sent.messages', '{message}', 'Messages that a publish was tried of.'),
  consumed: described('messaging.client.consumed.messages', '{message}', 'Messages given to a handler.'),
  attempts: described(
    'pulsework.attempts',
    '{attempt}',
    'Runs of a handler, by number of the attempt (5+: 5 or more).',
  ),
  outcomes: described('pulsework.outcomes', '{outcome}', 'What handlers said of deliveries.'),
  settlements: described('pulsework.settlements', '{settlement}', 'What became of deliveries.'),
  settlementFailures: described(
    'pulsework.settlement.failures',
    '{failure}',
    'Calls of a settlement that failed and are made again.',
  ),
  transactionCalls: described(
    'pulsework.transaction.calls',
    '{call}',
    'What was asked of coordinators for transactional handlers: begin, commit, abort.',
  ),
  deadLetters: described('pulsework.dead_letters', '{message}', 'Dead letters, by cause.'),
  dropped: described(
    'pulsework.dropped_runs',
    '{run}',
    'Runs that ended without an outcome, such as those that a drain cut short.',
  ),
} as const;

/** What a subscription or an outbox has now, from `runtime.health()` and `outboxHealth()`. Counts add up over processes, ages and states do not. */
export const GAUGES = {
  running: described('pulsework.deliveries.running', '{delivery}', 'Runs of the handler going on.'),
  held: described(
    'pulsework.deliveries.held',
    '{delivery}',
    'Deliveries whose id waits, unacknowledged, for its time.',
  ),
  kept: described('pulsework.deliveries.kept', '{delivery}', 'Deliveries kept with their payload to run in place.'),
  blocked: described('pulsework.deliveries.blocked', '{delivery}', 'Deliveries given up that wait for a person.'),
  waitingKeys: described('pulsework.keys.waiting', '{key}', 'Keys with messages behind one that is not settled.'),
  dependenciesDown: described(
    'pulsework.dependencies.down',
    '{dependency}',
    'Dependencies of the handler that are down.',
  ),
  backlog: described('pulsework.subscription.backlog', '{message}', 'Messages not acknowledged, where it is known.'),
  paused: described('pulsework.subscription.paused', '{subscription}', '1 while paused, by reason.'),
  degraded: described('pulsework.subscription.degraded', '{subscription}', '1 while something needs a person.'),
  oldestRun: described('pulsework.run.oldest_age', 's', 'Since the oldest run that goes on started; 0 without one.'),
  oldestFailure: described(
    'pulsework.failure.oldest_age',
    's',
    'Since the first failure of the message that has been failing longest; 0 without one.',
  ),
  outboxLeading: described('pulsework.outbox.leading', '{relay}', '1 where this process relays the outbox.'),
  outboxWaiting: described(
    'pulsework.outbox.waiting',
    '{message}',
    'Messages of the outbox that are neither published nor refused, up to 100,000; of the process that relays it.',
  ),
  outboxRefused: described(
    'pulsework.outbox.refused',
    '{message}',
    'Messages of the outbox that wait for a person; of the process that relays it.',
  ),
  outboxOldest: described(
    'pulsework.outbox.oldest_age',
    's',
    'Since the oldest message that waits in the outbox was added; 0 without one, and where another process relays it.',
  ),
} as const;

export const HISTOGRAMS = {
  process: described('messaging.process.duration', 's', 'From the start of a run to the end of its settlement.'),
  operation: described('messaging.client.operation.duration', 's', 'Publishes, and acknowledgements where asked for.'),
  drain: described('pulsework.drain.duration', 's', 'From the begin of a drain until everything is closed.'),
} as const;

export type CounterName = keyof typeof COUNTERS;
export type GaugeName = keyof typeof GAUGES;

/** The gauges that do not add up. */
const STATES: ReadonlySet<GaugeName> = new Set(['paused', 'degraded', 'oldestRun', 'oldestFailure', 'outboxOldest']);

/** A drain is seconds to minutes, not milliseconds. */
const DRAIN_BOUNDARIES: readonly number[] = [0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600];

export interface Instruments {
  readonly counters: ReadonlyMap<CounterName, Observable>;
  readonly gauges: ReadonlyMap<GaugeName, Observable>;
  readonly process: Histogram;
  readonly operation: Histogram;
  readonly drain: Histogram;
}

export function makeInstruments(meter: Meter): Instruments {
  const entries = <T extends object>(table: T) => Object.entries(table) as [keyof T, Description][];
  return {
    counters: new Map(
      entries(COUNTERS).map(([key, { name, ...options }]) => [key, meter.createObservableCounter(name, options)]),
    ),
    gauges: new Map(
      entries(GAUGES).map(([key, { name, ...options }]) => [
        key,
        STATES.has(key)
          ? meter.createObservableGauge(name, options)
          : meter.createObservableUpDownCounter(name, options),
      ]),
    ),
    process: histogram(meter, HISTOGRAMS.process, DURATION_BOUNDARIES),
    operation: histogram(meter, HISTOGRAMS.operation, DURATION_BOUNDARIES),
    drain: histogram(meter, HISTOGRAMS.drain, DRAIN_BOUNDARIES),
  };
}

function histogram(meter: Meter, { name, ...rest }: Description, boundaries: readonly number[]): Histogram {
  const options: MetricOptions = { ...rest, advice: { explicitBucketBoundaries: [...boundaries] } };
  return meter.createHistogram(name, options);
}

function described(name: string, unit: string, description: string): Description {
  return { name, unit, description };
}
