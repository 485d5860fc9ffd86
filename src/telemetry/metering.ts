// What one runtime counts and measures. Per message: a few plain numbers, and one record in a histogram.
import type { Attributes, Histogram } from '@opentelemetry/api';
import type { RuntimeView } from '../ports/runtime-view.js';
import type { RunStart, SettlementReport, TransactionCall } from '../ports/telemetry.js';
import { typeOfError } from './failure-facts.js';
import type { HealthSource } from './health-gauges.js';
import type { MetricBook } from './metric-book.js';
import { BoundedWords, PublishSeries, RunSeries } from './metric-series.js';
import type { ResolvedOptions } from './open-telemetry-options.js';
import * as names from './semconv.js';
import { commonAttributes } from './span-attributes.js';

/** More classes of errors than any program handles on purpose. */
const MAX_ERROR_TYPES = 50;

export class Metering {
  readonly #book: MetricBook;
  readonly #common: Attributes;
  readonly #maxHandlers: number;
  readonly #source: HealthSource;
  readonly #runs = new Map<string, Map<string, RunSeries>>();
  #pairs = 0;
  readonly #publishes = new Map<string, PublishSeries>();
  readonly #gaugeHandlers: BoundedWords;
  readonly #errorTypes = new BoundedWords(MAX_ERROR_TYPES, names.OTHER_ERROR);
  readonly #runtime: RuntimeView;

  constructor(book: MetricBook, runtime: RuntimeView, options: ResolvedOptions) {
    this.#book = book;
    this.#runtime = runtime;
    this.#common = commonAttributes(options);
    this.#maxHandlers = options.maxHandlers;
    this.#gaugeHandlers = new BoundedWords(options.maxHandlers, names.OTHER);
    const attributesOf = (handler: string, subscription: string): Attributes =>
      this.#gaugeAttributes(handler, subscription);
    const outboxAttributesOf = (store: string): Attributes =>
      book.intern({ ...this.#common, [names.OUTBOX_STORE]: store });
    this.#source = { runtime, attributesOf, outboxAttributesOf };
    book.health.open(this.#source);
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.#runtime.clock.now();
  }

  runStarted(start: RunStart): RunMeter {
    const series = this.#seriesOf(start);
    series.started(start.attempt);
    return new RunMeter(this, series, this.now());
  }

  settled(report: SettlementReport): void {
    this.#seriesOf(report).settled(report);
  }

  published(topic: string, startedMs: number, error: Error | undefined): void {
    const series = this.#publishSeriesOf(topic);
    const errorType = this.errorType(error && typeOfError(error));
    series.sent(errorType);
    this.record('operation', this.now() - startedMs, series.operation.of(errorType));
  }

  record(histogram: 'process' | 'operation', durationMs: number, attributes: Attributes): void {
    recordMs(this.#book.instruments[histogram], durationMs, attributes);
  }

  errorType(type: string | undefined): string | undefined {
    return type === undefined ? undefined : this.#errorTypes.of(type);
  }

  /** @param drainedMs how long the drain took; undefined where there was none */
  close(drainedMs: number | undefined): void {
    if (drainedMs !== undefined) recordMs(this.#book.instruments.drain, drainedMs, this.#common);
    this.#book.health.close(this.#source);
  }

  #seriesOf(facts: Pick<RunStart, 'handler' | 'topic' | 'topicTemplate' | 'subscription'>): RunSeries {
    const { handler, subscription, topicTemplate } = facts;
    const topic = topicTemplate ?? facts.topic;
    const known = this.#runs.get(handler)?.get(topic);
    if (known !== undefined) return known;
    const bounded = this.#pairs >= this.#maxHandlers && handler !== names.OTHER;
    if (bounded) return this.#seriesOf({ handler: names.OTHER, topic: names.OTHER, subscription: names.OTHER });
    this.#pairs += 1;
    const destination = topicTemplate === undefined ? names.DESTINATION_NAME : names.DESTINATION_TEMPLATE;
    const own = { [destination]: topic, [names.SUBSCRIPTION_NAME]: subscription, [names.HANDLER]: handler };
    const series = new RunSeries(this.#book, { ...this.#common, ...own });
    let topics = this.#runs.get(handler);
    if (topics === undefined) this.#runs.set(handler, (topics = new Map<string, RunSeries>()));
    topics.set(topic, series);
    return series;
  }

  #publishSeriesOf(topic: string): PublishSeries {
    const known = this.#publishes.get(topic);
    if (known !== undefined) return known;
    if (this.#publishes.size >= this.#maxHandlers && topic !== names.OTHER) return this.#publishSeriesOf(names.OTHER);
    const series = new PublishSeries(this.#book, this.#common, topic);
    this.#publishes.set(topic, series);
    return series;
  }

  #gaugeAttributes(handler: string, subscription: string): Attributes {
    const bounded = this.#gaugeHandlers.of(handler);
    const own = {
      [names.HANDLER]: bounded,
      [names.SUBSCRIPTION_NAME]: bounded === handler ? subscription : names.OTHER,
    };
    return this.#book.intern({ ...this.#common, ...own });
  }
}

/** Measures one run. */
export class RunMeter {
  readonly #metering: Metering;
  readonly #series: RunSeries;
  readonly #startedMs: number;
  #recorded = false;

  constructor(metering: Metering, series: RunSeries, startedMs: number) {
    this.#metering = metering;
    this.#series = series;
    this.#startedMs = startedMs;
  }

  /** The run is over, as its span is: at the end of its settlement, or when a call of it fails. */
  ended(errorType: string | undefined): void {
    if (this.#recorded) return;
    this.#recorded = true;
    const attributes = this.#series.process.of(this.#metering.errorType(errorType));
    this.#metering.record('process', this.#metering.now() - this.#startedMs, attributes);
  }

  settlementFailed(call: string, errorType: string | undefined): void {
    this.#series.settlementFailed(call);
    this.ended(errorType);
  }

  /** Counts a run without an outcome; one whose settlement did not come to its end had one. */
  dropped(): void {
    if (!this.#recorded) this.#series.dropped();
  }

  transactionCall(call: TransactionCall, error: Error | undefined): void {
    this.#series.transactionCall(call, this.#metering.errorType(error && typeOfError(error)));
  }

  acknowledged(startedMs: number, error: Error | undefined): void {
    const errorType = this.#metering.errorType(error && typeOfError(error));
    this.#metering.record('operation', this.#metering.now() - startedMs, this.#series.acknowledge.of(errorType));
  }
}

function recordMs(histogram: Histogram, durationMs: number, attributes: Attributes): void {
  histogram.record(durationMs / 1_000, attributes);
}
