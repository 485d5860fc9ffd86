// What a test may read of what happened: outcomes, dead letters and messages, decoded as the handlers of their topics would.
import type { Codec } from '../core/codec.js';
import { jsonCodec } from '../core/codec.js';
import type { DeadLetterCause } from '../core/dead-letter.js';
import { ConfigurationError } from '../core/errors.js';
import type { EncodedMessage, MessageKey } from '../core/message.js';
import { parseMessageId } from '../core/message-id.js';
import type { MessageProperties } from '../core/properties.js';
import { partitionName } from '../core/topic-name.js';
import { takesFrom } from '../core/topic-pattern.js';
import type { SettlementReport } from '../ports/telemetry.js';
import type { HandlerPlan } from '../runtime/handler-plan.js';
import type { RecordedMessage, TopicRecord } from './topic-record.js';

/** What became of one delivery: the report of its settlement, and what was delivered. */
export interface TestOutcome extends SettlementReport {
  /** As the topic's codec reads it, before its schema; the text where the codec cannot. Undefined where nothing was stored. */
  readonly payload: unknown;
}

export interface TestMessage {
  /** As the topic's codec reads it, before its schema; the text where the codec cannot. */
  readonly payload: unknown;
  readonly key: MessageKey | undefined;
  readonly properties: MessageProperties;
}

/** Its `properties` are those of the original message. */
export interface TestDeadLetter extends TestMessage {
  readonly reason: string;
  readonly cause: DeadLetterCause;
  /** Deliveries to the handler, the last one included. */
  readonly attempts: number;
  readonly handler: string;
  /** Of the letter itself: the original ones, and all that says why. */
  readonly letterProperties: MessageProperties;
}

export class TestReading {
  readonly #plans: readonly HandlerPlan[];
  readonly #record: TopicRecord;

  constructor(plans: readonly HandlerPlan[], record: TopicRecord) {
    this.#plans = plans;
    this.#record = record;
  }

  outcome(report: SettlementReport): TestOutcome {
    const message = this.#record.find(report.id);
    return { ...report, payload: message && read(message.payload, this.codecOf(report.topic)) };
  }

  /** @param topic full name, as in all that follows. @throws ConfigurationError */
  deadLetters(topic: string): readonly TestDeadLetter[] {
    const plans = this.#handlersOf(topic);
    if (plans.length === 0) throw this.#unknown('deadLetters', topic, 'no handler listens to it');
    const letterTopics = new Set(plans.map(({ deadLetterTopic }) => deadLetterTopic(topic)));
    const letters = [...letterTopics].flatMap((name) => this.#record.messages(name) ?? []);
    return letters
      .filter(({ properties }) => plans.some((plan) => isLetterOf(properties, plan, topic)))
      .toSorted((a, b) => a.order - b.order)
      .map((letter) => this.#deadLetter(topic, letter));
  }

  /** @param codec of the topic, where the test has it. @throws ConfigurationError */
  published(topic: string, codec: Codec | undefined): readonly TestMessage[] {
    const messages = this.#record.messages(topic);
    const declared = this.#plans.some(({ publishes }) => publishes?.has(topic));
    if (messages === undefined && !declared && this.#handlersOf(topic).length === 0)
      throw this.#unknown('published', topic, 'nothing was published to it and no handler knows it');
    return (messages ?? []).map(({ payload, key, properties }) => ({
      payload: read(payload, codec ?? this.codecOf(topic)),
      key,
      properties,
    }));
  }

  /** That of a handler which takes from the topic, else JSON. */
  codecOf(topic: string): Codec {
    const [plan] = this.#handlersOf(topic);
    return (plan?.readers.get(topic) ?? plan?.patternReader)?.codec ?? jsonCodec;
  }

  #deadLetter(topic: string, letter: RecordedMessage): TestDeadLetter {
    const { properties } = letter;
    return {
      payload: read(letter.payload, this.codecOf(topic)),
      key: letter.key,
      properties: (this.#originalOf(properties) ?? letter).properties,
      reason: properties['pulsework-reason'] ?? '',
      cause: properties['pulsework-cause'] as DeadLetterCause,
      attempts: Number(properties['pulsework-attempt']),
      handler: properties['pulsework-handler'] ?? '',
      letterProperties: properties,
    };
  }

  /** The message that a letter is of, as it came first; undefined where somebody wrote something else into the letter. */
  #originalOf(properties: MessageProperties): EncodedMessage | undefined {
    const { ORIGIN_MESSAGE_ID: origin, REAL_TOPIC: topic } = properties;
    if (origin === undefined || topic === undefined || !/^\d+:\d+:-?\d+/.test(origin)) return undefined;
    const id = parseMessageId(origin);
    return this.#record.find({ ...id, topic: id.partition < 0 ? topic : partitionName(topic, id.partition) });
  }

  #handlersOf(topic: string): readonly HandlerPlan[] {
    return this.#plans.filter(({ spec }) => takesFrom(spec, topic));
  }

  #unknown(method: string, topic: string, why: string): ConfigurationError {
    const known = this.#plans.flatMap(({ spec }) =>
      spec.pattern === undefined ? spec.topics : [String(spec.pattern)],
    );
    const listened = [...new Set(known)].join(', ');
    return new ConfigurationError([`${method}: topic "${topic}": ${why}; handlers listen to ${listened}`]);
  }
}

/** One dead letter topic may be that of several handlers, or of several topics of one. */
function isLetterOf(properties: MessageProperties, { name, spec }: HandlerPlan, topic: string): boolean {
  const from = properties['REAL_TOPIC'] ?? topic;
  return properties['pulsework-handler'] === name && (from === topic || !takesFrom(spec, from));
}

function read(payload: Uint8Array | null, codec: Codec): unknown {
  if (payload === null) return null;
  try {
    // A copy: what a test does to it must not change what the broker holds.
    return codec.decode(payload.slice());
  } catch {
    return new TextDecoder().decode(payload);
  }
}
