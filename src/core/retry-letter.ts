// What a retry letter carries: the original message whole, how often it was delivered already and when it is due.
// Java's names where Java has them (D-21), so that its tooling reads ours and we go on with its letters. Pure.
import type { EncodedMessage, ReceivedMessage } from './message.js';
import { formatMessageId } from './message-id.js';
import { copyProperties } from './properties.js';
import type { MessageProperties } from './properties.js';
import { fullTopicName, withoutPartition } from './topic-name.js';

/** What a message brought along when it came as a retry letter. */
export interface RetryLetter {
  /** The id of the message as it came first, in Java's form. The same on every attempt. */
  readonly originId: string;
  /** Full name of the topic it came from first, without a partition; undefined where the letter does not say. */
  readonly originTopic: string | undefined;
  /** Deliveries to a handler that failed so far. */
  readonly attempts: number;
  /** How often it was published again. */
  readonly republished: number;
  /** Not to run before, epoch milliseconds; 0 where the letter says nothing. */
  readonly dueMs: number;
  /** Epoch milliseconds of the first failure; undefined where the letter does not say. */
  readonly firstFailureMs: number | undefined;
}

export interface RetryFacts {
  /** Failed deliveries so far. */
  readonly attempts: number;
  readonly delayMs: number;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly firstFailureMs: number | undefined;
}

/** Written on each letter, and taken off again before a handler sees the properties. */
const LETTER_PROPERTIES = [
  'REAL_TOPIC',
  'ORIGIN_MESSAGE_ID',
  'ORIGIN_MESSAGE_IDY_TIME',
  'REAL_SUBSCRIPTION',
  'RECONSUMETIMES',
  'DELAY_TIME',
  'pulsework-attempt',
  'pulsework-republished',
  'pulsework-not-before',
  'pulsework-first-failure-time',
  'pulsework-deliver-at',
] as const;

/** Where the original had a property of one of those names (a dead letter that is handled again has), it travels so. */
const SET_ASIDE = 'pulsework-original.';

/** The message to publish to the retry letter topic. @param letter what it came with, where it was one before. */
export function retryLetterMessage(
  message: ReceivedMessage,
  letter: RetryLetter | undefined,
  facts: RetryFacts,
): EncodedMessage {
  const properties = copyProperties(message.properties);
  for (const name of LETTER_PROPERTIES) {
    const original = properties[name];
    if (original !== undefined) properties[SET_ASIDE + name] = original;
    // oxlint-disable-next-line typescript/no-dynamic-delete -- a set without prototype, used as a map
    delete properties[name];
  }
  const dueMs = facts.now + facts.delayMs;
  properties['REAL_TOPIC'] = letter?.originTopic ?? withoutPartition(message.id.topic);
  properties['ORIGIN_MESSAGE_ID'] = letter?.originId ?? formatMessageId(message.id);
  const republished = String((letter?.republished ?? 0) + 1);
  properties['RECONSUMETIMES'] = republished;
  properties['pulsework-republished'] = republished;
  properties['DELAY_TIME'] = String(facts.delayMs);
  properties['pulsework-attempt'] = String(facts.attempts);
  properties['pulsework-not-before'] = String(dueMs);
  if (facts.firstFailureMs !== undefined)
    properties['pulsework-first-failure-time'] = new Date(facts.firstFailureMs).toISOString();
  const { payload, key, orderingKey, eventTimeMs } = message;
  return { payload, key, orderingKey, eventTimeMs, properties, deliverAtMs: dueMs };
}

/** What `message` says as a retry letter, and the properties of the original. Anything may be missing or wrong in it. */
export function readRetryLetter(message: ReceivedMessage): {
  readonly letter: RetryLetter;
  readonly properties: MessageProperties;
} {
  const written = message.properties;
  const republished = count(written['RECONSUMETIMES']);
  const firstFailureMs = Date.parse(written['pulsework-first-failure-time'] ?? '');
  const letter = {
    originId: written['ORIGIN_MESSAGE_ID'] ?? formatMessageId(message.id),
    originTopic: topicOf(written['REAL_TOPIC']),
    // Java counts its own republishing and leaves our properties as they were. Not every letter of ours was a failure.
    attempts: count(written['pulsework-attempt']) + Math.max(0, republished - count(written['pulsework-republished'])),
    republished,
    dueMs: count(written['pulsework-not-before']),
    firstFailureMs: Number.isNaN(firstFailureMs) ? undefined : firstFailureMs,
  };
  return { letter, properties: originalProperties(written) };
}

/** Undefined for what is no topic name: dead letters and further letters go to topics named after it. */
function topicOf(name: string | undefined): string | undefined {
  try {
    return name === undefined ? undefined : withoutPartition(fullTopicName(name));
  } catch {
    return undefined;
  }
}

function originalProperties(written: MessageProperties): MessageProperties {
  const properties = copyProperties(written);
  for (const name of LETTER_PROPERTIES) {
    // oxlint-disable-next-line typescript/no-dynamic-delete -- a set without prototype, used as a map
    delete properties[name];
  }
  for (const name of LETTER_PROPERTIES) {
    const original = properties[SET_ASIDE + name];
    if (original !== undefined) properties[name] = original;
    // oxlint-disable-next-line typescript/no-dynamic-delete -- a set without prototype, used as a map
    delete properties[SET_ASIDE + name];
  }
  return properties;
}

/** A whole number of 0 or more as text; anything else is 0. */
function count(text: string | undefined): number {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
