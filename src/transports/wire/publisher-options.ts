// The options of one publisher: what they mean, their defaults, their checks. Numbers are Java's unless said otherwise.
import { ConfigurationError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import { OptionChecker, seconds } from '../../core/options.js';
import { COMPRESSION_NUMBERS } from './protocol/message-metadata.js';
import type { Compression } from './protocol/message-metadata.js';

/** Messages that are published close together travel as one entry, with one receipt for all of them. */
export interface BatchingOptions {
  /** @default 1,000 */
  readonly maxMessages?: number | undefined;
  /** Of payloads, keys and properties, before compression. @default 128 KiB */
  readonly maxBytes?: number | undefined;
  /** How long the first message waits for others; 0 sends at the end of the turn of the event loop. @default 1 ms */
  readonly maxDelayMs?: number | undefined;
  /**
   * A batch for each ordering key, else key. Needed where consumers share a subscription by key (Key_Shared): a batch
   * goes to one consumer as a whole. @default false
   */
  readonly byKey?: boolean | undefined;
}

/** The partition for a message, 0 to `partitions` - 1. */
export type Routing = (message: EncodedMessage, partitions: number) => number;

export interface WirePublisherOptions {
  /** Unique on the topic. Brokers that deduplicate know a producer by it. @default the broker makes one */
  readonly producerName?: string | undefined;
  /**
   * A subscription that the broker creates at the earliest message before it confirms this producer, where the topic has
   * none of that name (D-19). Refused with NOT_ALLOWED where brokers may not create subscriptions. @default none
   */
  readonly initialSubscription?: string | undefined;
  /** `false` sends each message by itself. @default batches with the limits above */
  readonly batching?: BatchingOptions | false | undefined;
  /** Of payloads, a batch as a whole. What it does not make smaller is sent as it is. @default 'none' */
  readonly compression?: Compression | undefined;
  /**
   * Messages without a receipt; further ones wait for a place. @default 50,000. There is also the limit in bytes of the
   * client, see `WireOptions.maxPendingBytes`.
   */
  readonly maxPendingMessages?: number | undefined;
  /**
   * From `publish` to the receipt. Once it is over for the oldest message, it and all that were published after it fail
   * with CALL_TIMED_OUT, so that they can be published again in order. `Infinity` waits for ever. @default 30 seconds
   */
  readonly sendTimeoutMs?: number | undefined;
  /**
   * The partition of a message. Without an own rule, a key goes by its hash; messages without a key take turns, batch by
   * batch (`round-robin`), or all go to one partition chosen at random (`single`). @default 'round-robin'
   */
  readonly routing?: 'round-robin' | 'single' | Routing | undefined;
  /** `java` is what Java's producers do unless told otherwise; `murmur3` is the same in every client. @default 'java' */
  readonly keyHash?: 'java' | 'murmur3' | undefined;
}

export const DEFAULT_BATCHING = { maxMessages: 1_000, maxBytes: 128 * 1024, maxDelayMs: 1, byKey: false } as const;

export const DEFAULT_WIRE_PUBLISHER = {
  compression: 'none',
  maxPendingMessages: 50_000,
  sendTimeoutMs: seconds(30),
  routing: 'round-robin',
  keyHash: 'java',
} as const;

export interface ResolvedBatching {
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly maxDelayMs: number;
  readonly byKey: boolean;
}

export interface ResolvedPublisherOptions {
  readonly producerName: string | undefined;
  readonly initialSubscription: string | undefined;
  readonly batching: ResolvedBatching | undefined;
  readonly compression: Compression;
  readonly maxPendingMessages: number;
  readonly sendTimeoutMs: number;
  readonly routing: 'round-robin' | 'single' | Routing;
  readonly keyHash: 'java' | 'murmur3';
}

const KNOWN: readonly (keyof WirePublisherOptions)[] = [
  'producerName',
  'initialSubscription',
  'batching',
  'compression',
  'maxPendingMessages',
  'sendTimeoutMs',
  'routing',
  'keyHash',
];
const KNOWN_OF_BATCHING: readonly (keyof BatchingOptions)[] = ['maxMessages', 'maxBytes', 'maxDelayMs', 'byKey'];

/** @param topic for errors. @throws ConfigurationError with every problem. */
export function resolvePublisherOptions(topic: string, options: WirePublisherOptions): ResolvedPublisherOptions {
  const check = new OptionChecker(`publisher of "${topic}"`);
  const unchecked: unknown = options;
  if (!check.object('options', unchecked)) throw new ConfigurationError(check.problems);
  check.unknownOptions(options, KNOWN);
  check.nonEmptyString('producerName', options.producerName);
  check.nonEmptyString('initialSubscription', options.initialSubscription);
  check.oneOf('compression', options.compression, Object.keys(COMPRESSION_NUMBERS));
  check.positiveInteger('maxPendingMessages', options.maxPendingMessages);
  check.durationMs('sendTimeoutMs', options.sendTimeoutMs, { minMs: 1, infinite: true });
  if (typeof options.routing !== 'function') check.oneOf('routing', options.routing, ['round-robin', 'single']);
  check.oneOf('keyHash', options.keyHash, ['java', 'murmur3']);
  if (options.batching !== false) checkBatching(options.batching, check);
  check.throwIfAny();
  return {
    producerName: options.producerName,
    initialSubscription: options.initialSubscription,
    batching: options.batching === false ? undefined : resolvedBatching(options.batching ?? {}),
    compression: options.compression ?? DEFAULT_WIRE_PUBLISHER.compression,
    maxPendingMessages: options.maxPendingMessages ?? DEFAULT_WIRE_PUBLISHER.maxPendingMessages,
    sendTimeoutMs: options.sendTimeoutMs ?? DEFAULT_WIRE_PUBLISHER.sendTimeoutMs,
    routing: options.routing ?? DEFAULT_WIRE_PUBLISHER.routing,
    keyHash: options.keyHash ?? DEFAULT_WIRE_PUBLISHER.keyHash,
  };
}

function checkBatching(batching: unknown, check: OptionChecker): void {
  if (batching === undefined || !check.object('batching', batching)) return;
  check.unknownOptions(batching, KNOWN_OF_BATCHING);
  check.positiveInteger('batching.maxMessages', batching['maxMessages']);
  check.positiveInteger('batching.maxBytes', batching['maxBytes']);
  check.durationMs('batching.maxDelayMs', batching['maxDelayMs']);
  check.boolean('batching.byKey', batching['byKey']);
}

function resolvedBatching(options: BatchingOptions): ResolvedBatching {
  return {
    maxMessages: options.maxMessages ?? DEFAULT_BATCHING.maxMessages,
    maxBytes: options.maxBytes ?? DEFAULT_BATCHING.maxBytes,
    maxDelayMs: options.maxDelayMs ?? DEFAULT_BATCHING.maxDelayMs,
    byKey: options.byKey ?? DEFAULT_BATCHING.byKey,
  };
}
