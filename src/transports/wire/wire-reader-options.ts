// The options of a reader: what they mean, their defaults, their checks.
import { ConfigurationError, describeValue } from '../../core/errors.js';
import { checkMessageId } from '../../core/message-id.js';
import type { MessageId } from '../../core/message-id.js';
import { OptionChecker } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { fullTopicName, partitionOf } from '../../core/topic-name.js';
import { checkShownProperties, checkUpdateMs, shownProperties, updateMs } from './attachment-options.js';
import type { ConsumerSpec } from './subscribe-command.js';
import type { Intervals } from './topic-source.js';

export interface WireReaderOptions {
  /** Short or full. Of a partitioned topic all partitions are read; a single one is named with `-partition-N`. */
  readonly topic: string;
  /**
   * Where to begin: at the first message that the topic has, after the last one that it has when the reader is opened,
   * at a message, or at the first message published at a time or later (by the clocks of the producers). A message of a
   * partitioned topic needs the name of its partition as `topic`.
   */
  readonly start: 'earliest' | 'latest' | MessageId | Date;
  /** Whether the message `start`, or the last one with `latest`, is read too. @default false */
  readonly startInclusive?: boolean | undefined;
  /** How many messages may lie in the client beyond those given out. @default 1000, as Java's client */
  readonly prefetch?: number | undefined;
  /** What the broker shows of it. @default pulsework-reader-<random> */
  readonly readerName?: string | undefined;
  /** What the broker shows beside it. @default none */
  readonly properties?: Readonly<Record<string, string>> | undefined;
  /**
   * How often a partitioned topic is asked for new partitions, which are read from their first message; milliseconds, 0
   * or false for never. @default 60 seconds, as Java's client
   */
  readonly partitionsUpdateMs?: number | false | undefined;
}

export interface ResolvedReaderOptions extends Intervals {
  /** Full name. */
  readonly topic: string;
  readonly start: 'earliest' | 'latest' | MessageId | Date;
  readonly startInclusive: boolean;
  readonly spec: Omit<ConsumerSpec, 'startOf'>;
}

const KNOWN: readonly (keyof WireReaderOptions)[] = [
  'topic',
  'start',
  'startInclusive',
  'prefetch',
  'readerName',
  'properties',
  'partitionsUpdateMs',
];
const DEFAULT_PREFETCH = 1_000;

/** @throws ConfigurationError with every problem; PulseworkError TOPIC_NAME_INVALID, MESSAGE_ID_INVALID. */
export function resolveReaderOptions(options: WireReaderOptions, random: () => number): ResolvedReaderOptions {
  const check = new OptionChecker('reader');
  const unchecked: unknown = options;
  if (!check.object('options', unchecked)) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, KNOWN);
  check.required(options, { topic: 'the name of a topic', start: 'earliest, latest, a message id or a Date' });
  check.nonEmptyString('topic', options.topic);
  checkStart(options.start, check);
  check.boolean('startInclusive', options.startInclusive);
  check.positiveInteger('prefetch', options.prefetch);
  check.nonEmptyString('readerName', options.readerName);
  checkShownProperties(options.properties, check);
  checkUpdateMs('partitionsUpdateMs', options.partitionsUpdateMs, check);
  check.throwIfAny();
  const topic = topicOf(options);
  const name = `pulsework-reader-${random().toString(36).slice(2, 12)}`;
  const spec: SubscriptionSpec = {
    topics: [topic],
    subscription: name,
    type: 'exclusive',
    initialPosition: 'earliest',
    prefetch: options.prefetch ?? DEFAULT_PREFETCH,
    consumerName: options.readerName ?? name,
  };
  return {
    topic,
    start: options.start,
    startInclusive: options.startInclusive ?? false,
    spec: { ...spec, properties: shownProperties(options.properties) },
    partitionsUpdateMs: updateMs(options.partitionsUpdateMs),
    patternUpdateMs: 0,
  };
}

function checkStart(start: unknown, check: OptionChecker): void {
  if (start === undefined || start === 'earliest' || start === 'latest') return;
  if (start instanceof Date && !Number.isNaN(start.getTime())) return;
  if (typeof start === 'object' && start !== null && !(start instanceof Date))
    return checkMessageId(start as MessageId);
  check.problem(`"start" must be earliest, latest, a message id or a valid Date, got ${describeValue(start)}`);
}

/** With a message as its start it must be the one that the message is of. @throws ConfigurationError */
function topicOf({ topic: asked, start }: WireReaderOptions): string {
  const topic = fullTopicName(asked);
  if (typeof start !== 'object' || start instanceof Date) return topic;
  if (start.partition === partitionOf(topic) && (start.topic === '' || start.topic === topic)) return topic;
  const place = start.topic === '' ? `partition ${start.partition}` : start.topic;
  throw new ConfigurationError([`reader: "start" is a message of ${place}, but "topic" names ${topic}`]);
}
