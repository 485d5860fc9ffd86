// The series of one handler and topic, and of one topic published to: attributes made once, counts found by one look-up.
import type { Attributes } from '@opentelemetry/api';
import type { RedeliveryStrategy } from '../core/settlement.js';
import type { SettlementReport, TransactionCall } from '../ports/telemetry.js';
import type { CounterName } from './instruments.js';
import type { MetricBook, Tally } from './metric-book.js';
import * as names from './semconv.js';

/** A bound on what a program can make up: names of error classes, of calls, of topics. */
export class BoundedWords {
  readonly #words = new Set<string>();
  readonly #max: number;
  readonly #other: string;

  constructor(max: number, other: string) {
    this.#max = max;
    this.#other = other;
  }

  /** `word`, or the one that stands for all further ones. */
  of(word: string): string {
    if (this.#words.has(word)) return word;
    if (this.#words.size >= this.#max) return this.#other;
    this.#words.add(word);
    return word;
  }
}

/** Counts by one word, such as an outcome. */
class Tallies {
  readonly #book: MetricBook;
  readonly #counter: CounterName;
  readonly #attributes: Attributes;
  readonly #attributesOf: (word: string) => Attributes;
  readonly #byWord = new Map<string | undefined, Tally>();

  /** @param by the name of the attribute that has the word, or the attributes that it stands for */
  constructor(
    book: MetricBook,
    counter: CounterName,
    attributes: Attributes,
    by: string | ((word: string) => Attributes),
  ) {
    this.#book = book;
    this.#counter = counter;
    this.#attributes = attributes;
    this.#attributesOf = typeof by === 'string' ? (word) => ({ [by]: word }) : by;
  }

  /** @param word undefined: without it */
  add(word: string | undefined): void {
    let tally = this.#byWord.get(word);
    if (tally === undefined) {
      const more = word === undefined ? undefined : this.#attributesOf(word);
      tally = this.#book.tally(this.#counter, { ...this.#attributes, ...more });
      this.#byWord.set(word, tally);
    }
    tally.value += 1;
  }
}

/** Attributes with and without an error type, each made once. */
class DurationAttributes {
  readonly #attributes: Attributes;
  readonly #failed = new Map<string, Attributes>();

  constructor(attributes: Attributes) {
    this.#attributes = attributes;
  }

  of(errorType: string | undefined): Attributes {
    if (errorType === undefined) return this.#attributes;
    let attributes = this.#failed.get(errorType);
    if (attributes === undefined) {
      attributes = { ...this.#attributes, [names.ERROR_TYPE]: errorType };
      this.#failed.set(errorType, attributes);
    }
    return attributes;
  }
}

export class RunSeries {
  readonly process: DurationAttributes;
  readonly acknowledge: DurationAttributes;
  readonly #consumed: Tallies;
  readonly #attempts: Tallies;
  readonly #outcomes: Tallies;
  readonly #settlements: Tallies;
  readonly #failures: Tallies;
  readonly #transactionCalls: Readonly<Record<TransactionCall, Tallies>>;
  readonly #deadLetters: Tallies;
  readonly #dropped: Tallies;

  /** @param own handler, topic and subscription, and what all series have */
  constructor(book: MetricBook, own: Attributes) {
    const processing = { ...own, [names.OPERATION_NAME]: 'process' };
    const acknowledge = { ...own, [names.OPERATION_NAME]: 'ack', [names.OPERATION_TYPE]: 'settle' };
    this.process = new DurationAttributes(processing);
    this.acknowledge = new DurationAttributes(acknowledge);
    this.#consumed = new Tallies(book, 'consumed', processing, names.ERROR_TYPE);
    this.#attempts = new Tallies(book, 'attempts', own, names.ATTEMPT);
    this.#outcomes = new Tallies(book, 'outcomes', own, names.OUTCOME);
    this.#settlements = new Tallies(book, 'settlements', own, settlementAttributes);
    this.#failures = new Tallies(book, 'settlementFailures', own, names.SETTLEMENT_CALL);
    const calls = (call: TransactionCall): Tallies =>
      new Tallies(book, 'transactionCalls', { ...own, [names.OPERATION_NAME]: call }, names.ERROR_TYPE);
    this.#transactionCalls = { begin: calls('begin'), commit: calls('commit'), abort: calls('abort') };
    this.#deadLetters = new Tallies(book, 'deadLetters', own, names.DEAD_LETTER_CAUSE);
    this.#dropped = new Tallies(book, 'dropped', own, '');
  }

  started(attempt: number): void {
    this.#consumed.add(undefined);
    this.#attempts.add(attempt < 5 ? String(attempt) : '5+');
  }

  settled({ outcome, settlement, strategy, cause }: SettlementReport): void {
    this.#outcomes.add(outcome);
    this.#settlements.add(strategy ?? settlement);
    if (settlement === 'dead-letter') this.#deadLetters.add(cause);
  }

  settlementFailed(call: string): void {
    this.#failures.add(call);
  }

  transactionCall(call: TransactionCall, errorType: string | undefined): void {
    this.#transactionCalls[call].add(errorType);
  }

  dropped(): void {
    this.#dropped.add(undefined);
  }
}

/** A strategy says which settlement it is of. */
function settlementAttributes(word: string): Attributes {
  return Object.hasOwn(STRATEGIES, word)
    ? { [names.SETTLEMENT]: 'redeliver', [names.STRATEGY]: word }
    : { [names.SETTLEMENT]: word };
}

const STRATEGIES: Readonly<Record<RedeliveryStrategy, true>> = { hold: true, local: true, republish: true };

export class PublishSeries {
  readonly operation: DurationAttributes;
  readonly #sent: Tallies;

  constructor(book: MetricBook, common: Attributes, topic: string) {
    const sent = { ...common, [names.OPERATION_NAME]: 'send', [names.DESTINATION_NAME]: topic };
    this.operation = new DurationAttributes({ ...sent, [names.OPERATION_TYPE]: 'send' });
    this.#sent = new Tallies(book, 'sent', sent, names.ERROR_TYPE);
  }

  sent(errorType: string | undefined): void {
    this.#sent.add(errorType);
  }
}
