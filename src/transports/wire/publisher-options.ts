// The options of one publisher: what they mean, their defaults, their checks. Numbers are Java's unless said otherwise.
import type { AccessMode } from '../../core/access-mode.js';
import { ConfigurationError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import { OptionChecker, seconds } from '../../core/options.js';
import { checkChunking, resolvedChunkBytes } from '../../chunks/chunk-options.js';
import { checkShownProperties, checkUpdateMs, shownProperties, updateMs } from './attachment-options.js';
import { COMPRESSION_NUMBERS } from './protocol/message-metadata.js';
import type { Compression, KeyValue } from './protocol/message-metadata.js';
import type { SchemaData } from './protocol/schema-commands.js';
import { checkSchema, schemaData } from './topic-schema.js';
import type { WireSchema } from './topic-schema.js';

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

export const ACCESS_MODE_NUMBERS: Readonly<Record<AccessMode, number>> = {
  shared: 0,
  exclusive: 1,
  'wait-for-exclusive': 2,
  'exclusive-with-fencing': 3,
};

export interface WirePublisherOptions {
  /** Unique on the topic. Brokers that deduplicate know a producer by it. @default the broker makes one */
  readonly producerName?: string | undefined;
  /**
   * With `wait-for-exclusive`, `publisher()` resolves when its turn has come, however long that takes; closing the client
   * ends the wait. On a partitioned topic the partitions are taken one after the other. @default 'shared'
   */
  readonly accessMode?: AccessMode | undefined;
  /** What the broker shows beside the producer, e.g. the version of the service. @default none */
  readonly properties?: Readonly<Record<string, string>> | undefined;
  /**
   * How often a partitioned topic is asked for new partitions, in milliseconds; 0 or false: never. The partition of a key is its
   * hash modulo the number of partitions: once there are more, a key may go to another one than before, and its order
   * holds on each side of that moment, not across it. @default 60 seconds, as Java's client
   */
  readonly partitionsUpdateMs?: number | false | undefined;
  /**
   * What payloads are. The broker keeps it for the topic and refuses one that does not fit what it has, with
   * SCHEMA_INCOMPATIBLE; messages carry its version. Payloads are not touched. @default bytes
   */
  readonly schema?: WireSchema | undefined;
  /**
   * A subscription that the broker creates at the earliest message before it confirms this producer, where the topic has
   * none of that name (D-19). Refused with NOT_ALLOWED where brokers may not create subscriptions. @default none
   */
  readonly initialSubscription?: string | undefined;
  /** `false` sends each message by itself. @default batches with the limits above */
  readonly batching?: BatchingOptions | false | undefined;
  /**
   * Cuts a message that is larger than the broker takes for one entry (5 MiB by default) into chunks, which consumers join
   * again. Needs `batching: false` and a persistent topic. The receipt is that of the last chunk. A chunk that fails, or a
   * send timeout for the whole, fails the message; chunks that are stored then stay on the topic, and consumers skip them
   * once the message is published again. At most 2 GiB, and consumers have limits of their own. @default false
   */
  readonly chunking?: boolean | undefined;
  /**
   * Payload bytes in one chunk, at least 1,024. @default what the broker takes, less the properties and 10 KiB: storage adds
   * to each entry
   */
  readonly maxChunkBytes?: number | undefined;
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
  accessMode: 'shared',
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
  /** `Infinity` for as much as fits; undefined without chunking. */
  readonly maxChunkBytes: number | undefined;
  readonly compression: Compression;
  readonly maxPendingMessages: number;
  readonly sendTimeoutMs: number;
  readonly routing: 'round-robin' | 'single' | Routing;
  readonly keyHash: 'java' | 'murmur3';
  readonly accessMode: AccessMode;
  readonly properties: readonly KeyValue[] | undefined;
  readonly schema: SchemaData | undefined;
  readonly partitionsUpdateMs: number;
}

const KNOWN: readonly (keyof WirePublisherOptions)[] = [
  'producerName',
  'initialSubscription',
  'batching',
  'chunking',
  'maxChunkBytes',
  'compression',
  'maxPendingMessages',
  'sendTimeoutMs',
  'routing',
  'keyHash',
  'accessMode',
  'properties',
  'partitionsUpdateMs',
  'schema',
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
  check.oneOf('accessMode', options.accessMode, Object.keys(ACCESS_MODE_NUMBERS));
  checkShownProperties(options.properties, check);
  checkSchema(options.schema, check);
  checkUpdateMs('partitionsUpdateMs', options.partitionsUpdateMs, check);
  if (options.batching !== false) checkBatching(options.batching, check);
  checkChunking(topic, options, check);
  if (options.chunking === true && options.batching !== false)
    check.problem('"chunking" needs "batching: false": a chunk is never part of a batch');
  check.throwIfAny();
  return {
    producerName: options.producerName,
    initialSubscription: options.initialSubscription,
    batching: options.batching === false ? undefined : resolvedBatching(options.batching ?? {}),
    maxChunkBytes: resolvedChunkBytes(options),
    compression: options.compression ?? DEFAULT_WIRE_PUBLISHER.compression,
    maxPendingMessages: options.maxPendingMessages ?? DEFAULT_WIRE_PUBLISHER.maxPendingMessages,
    sendTimeoutMs: options.sendTimeoutMs ?? DEFAULT_WIRE_PUBLISHER.sendTimeoutMs,
    routing: options.routing ?? DEFAULT_WIRE_PUBLISHER.routing,
    keyHash: options.keyHash ?? DEFAULT_WIRE_PUBLISHER.keyHash,
    accessMode: options.accessMode ?? DEFAULT_WIRE_PUBLISHER.accessMode,
    properties: shownProperties(options.properties),
    schema: schemaData(options.schema),
    partitionsUpdateMs: updateMs(options.partitionsUpdateMs),
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
