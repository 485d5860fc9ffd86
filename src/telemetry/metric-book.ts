// The numbers behind the metrics of one meter provider. An observable instrument has one value for each set of attributes,
// so all runtimes that report to a provider share one book and one callback: with one each, the last to be read would
// overwrite the others. Counts stay when a runtime closes: what it did last is often collected only after it.
import type { Attributes, BatchObservableResult, MeterProvider } from '@opentelemetry/api';
import { VERSION } from '../core/version.js';
import { HealthGauges } from './health-gauges.js';
import type { CounterName, Instruments } from './instruments.js';
import { makeInstruments } from './instruments.js';

export interface Tally {
  readonly attributes: Attributes;
  value: number;
}

const books = new WeakMap<MeterProvider, MetricBook>();

export class MetricBook {
  readonly instruments: Instruments;
  readonly health: HealthGauges;
  readonly #tallies = new Map<CounterName, Map<Attributes, Tally>>();
  readonly #interned = new Map<string, Attributes>();

  /** The one book of `provider`. */
  static of(provider: MeterProvider): MetricBook {
    const known = books.get(provider);
    if (known !== undefined) return known;
    const book = new MetricBook(provider);
    books.set(provider, book);
    return book;
  }

  private constructor(provider: MeterProvider) {
    const meter = provider.getMeter('pulsework', VERSION);
    this.instruments = makeInstruments(meter);
    const { counters, gauges } = this.instruments;
    // Apart: what fails in one is not to cost the other's numbers.
    meter.addBatchObservableCallback((result) => this.#observeCounts(result), [...counters.values()]);
    this.health = new HealthGauges(gauges);
    meter.addBatchObservableCallback((result) => this.health.observe(result), [...gauges.values()]);
  }

  /** The same object for the same attributes: series are told apart by it. */
  intern(attributes: Attributes): Attributes {
    const key = JSON.stringify(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
    const known = this.#interned.get(key);
    if (known !== undefined) return known;
    const frozen = Object.freeze({ ...attributes });
    this.#interned.set(key, frozen);
    return frozen;
  }

  /** Where to count; the same for the same attributes. */
  tally(counter: CounterName, attributes: Attributes): Tally {
    const interned = this.intern(attributes);
    let tallies = this.#tallies.get(counter);
    if (tallies === undefined) this.#tallies.set(counter, (tallies = new Map<Attributes, Tally>()));
    let tally = tallies.get(interned);
    if (tally === undefined) tallies.set(interned, (tally = { attributes: interned, value: 0 }));
    return tally;
  }

  #observeCounts(result: BatchObservableResult): void {
    for (const [counter, tallies] of this.#tallies) {
      const instrument = this.instruments.counters.get(counter);
      if (instrument === undefined) continue;
      for (const { attributes, value } of tallies.values()) result.observe(instrument, value, attributes);
    }
  }
}
