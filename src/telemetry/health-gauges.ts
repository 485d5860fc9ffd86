// Gauges of the subscriptions and of the outbox, read from the health of the runtime when metrics are collected: nothing is kept
// up to date for them.
import type { Attributes, BatchObservableResult, Observable } from '@opentelemetry/api';
import type { OutboxHealth, PauseReason, RuntimeView, SubscriptionHealth } from '../ports/runtime-view.js';
import type { GaugeName } from './instruments.js';
import { PAUSE_REASON } from './semconv.js';

/** A runtime that is open, and the attributes of its subscriptions' gauges: the same object for the same series. */
export interface HealthSource {
  readonly runtime: RuntimeView;
  readonly attributesOf: (handler: string, subscription: string) => Attributes;
  /** Those of the gauges of its outbox, likewise. */
  readonly outboxAttributesOf: (store: string) => Attributes;
}

const PAUSE_REASONS: Readonly<Record<PauseReason, true>> = {
  operator: true,
  outage: true,
  'held-full': true,
  'lane-full': true,
  'abandoned-runs': true,
  'broad-failure': true,
};
const REASONS = Object.keys(PAUSE_REASONS) as readonly PauseReason[];

type Observe = (gauge: GaugeName, value: number, more?: Attributes) => void;

export class HealthGauges {
  readonly #gauges: ReadonlyMap<GaugeName, Observable>;
  readonly #sources = new Set<HealthSource>();
  /** Every series there was, and whether its backlog was known. */
  readonly #series = new Map<Attributes, boolean>();
  /** Every series of an outbox there was. */
  readonly #outboxes = new Set<Attributes>();

  constructor(gauges: ReadonlyMap<GaugeName, Observable>) {
    this.#gauges = gauges;
  }

  open(source: HealthSource): void {
    this.#sources.add(source);
  }

  close(source: HealthSource): void {
    this.#sources.delete(source);
  }

  observe(result: BatchObservableResult): void {
    this.#observeSubscriptions(result);
    this.#observeOutboxes(result);
  }

  /**
   * Several subscriptions may share a series: of a bound that was reached, or of runtimes with the same handlers. One that
   * nobody has any more reads 0: the SDK would export its last value for ever.
   */
  #observeSubscriptions(result: BatchObservableResult): void {
    const bySeries = this.#healthBySeries();
    for (const [attributes, hadBacklog] of this.#series) {
      const observe: Observe = (gauge, value, more) => {
        const instrument = this.#gauges.get(gauge);
        if (instrument !== undefined) result.observe(instrument, value, more ? { ...attributes, ...more } : attributes);
      };
      const healths = bySeries.get(attributes) ?? [];
      observeSeries(observe, healths);
      if (hadBacklog) observe('backlog', sum(healths.map(({ backlog = 0 }) => backlog)));
    }
  }

  /** As with subscriptions: nobody who relays it any more reads 0. */
  #observeOutboxes(result: BatchObservableResult): void {
    const bySeries = new Map<Attributes, OutboxHealth[]>();
    for (const { runtime, outboxAttributesOf } of this.#sources) {
      const health = runtime.outboxHealth?.();
      if (health === undefined) continue;
      const attributes = outboxAttributesOf(health.store);
      this.#outboxes.add(attributes);
      bySeries.set(attributes, [...(bySeries.get(attributes) ?? []), health]);
    }
    for (const attributes of this.#outboxes) {
      const healths = bySeries.get(attributes) ?? [];
      const observe: Observe = (gauge, value) => {
        const instrument = this.#gauges.get(gauge);
        if (instrument !== undefined) result.observe(instrument, value, attributes);
      };
      observe('outboxLeading', healths.filter(({ role }) => role === 'leading').length);
      observe('outboxWaiting', sum(healths.map(({ waiting }) => waiting)));
      observe('outboxRefused', sum(healths.map(({ refused }) => refused)));
      observe('outboxOldest', oldestSeconds(healths.map(({ oldestMs }) => oldestMs)));
    }
  }

  #healthBySeries(): ReadonlyMap<Attributes, readonly SubscriptionHealth[]> {
    const bySeries = new Map<Attributes, SubscriptionHealth[]>();
    for (const { runtime, attributesOf } of this.#sources) {
      for (const health of runtime.health()) {
        const attributes = attributesOf(health.handler, health.subscription);
        const others = bySeries.get(attributes);
        if (others === undefined) bySeries.set(attributes, [health]);
        else others.push(health);
        this.#series.set(attributes, (this.#series.get(attributes) ?? false) || health.backlog !== undefined);
      }
    }
    return bySeries;
  }
}

function observeSeries(observe: Observe, healths: readonly SubscriptionHealth[]): void {
  for (const name of ['running', 'held', 'kept', 'blocked', 'waitingKeys'] as const)
    observe(name, sum(healths.map((health) => health[name])));
  observe('dependenciesDown', sum(healths.map(({ dependenciesDown }) => dependenciesDown.length)));
  observe('oldestRun', oldestSeconds(healths.map(({ oldestRunMs }) => oldestRunMs)));
  observe('oldestFailure', oldestSeconds(healths.map(({ oldestFailureMs }) => oldestFailureMs)));
  observe('degraded', Number(healths.some(({ state }) => state === 'degraded')));
  // The reasons that do not hold too: an alarm ends by a 0, not by silence.
  for (const reason of REASONS) {
    const paused = healths.some(({ pausedBy }) => pausedBy.includes(reason));
    observe('paused', Number(paused), { [PAUSE_REASON]: reason });
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function oldestSeconds(agesMs: readonly (number | undefined)[]): number {
  return Math.max(0, ...agesMs.map((ageMs) => ageMs ?? 0)) / 1_000;
}
