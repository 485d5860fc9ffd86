// What clients ask the broker for when they connect, and what is wrong with it: all of it at once.
import type { AccessMode } from '../core/access-mode.js';
import { ACCESS_MODES } from '../core/access-mode.js';
import { PulseworkError, describeValue } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import { checkSequenceId } from '../core/sequence-id.js';
import type { InitialPosition, SubscriptionType } from '../core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../core/subscription-spec.js';
import type { ChunkOrigin, EntryOrigin } from './entry.js';
import type { SlotRange } from './key-selector.js';
import { stickyRangeProblems } from './sticky-ranges.js';

type Unchecked<Request> = { readonly [K in keyof Request]: unknown };

export interface ConsumerRequest {
  /** Short or full name of a topic or of one partition. */
  readonly topic: string;
  readonly subscription: string;
  readonly type: SubscriptionType;
  readonly initialPosition: InitialPosition;
  readonly consumerName: string;
  /** Lower is served first. @default 0 */
  readonly priority?: number | undefined;
  /**
   * Key_Shared only: the hash slots of 0 to 65,535 that this consumer takes, the STICKY mode (G-09). Slots that no consumer
   * took wait. @default the broker divides the slots
   */
  readonly stickyRanges?: readonly SlotRange[] | undefined;
  /** Key_Shared only: a key that moves to another consumer does not wait until the one before has settled it (K-15). @default false */
  readonly allowOutOfOrder?: boolean | undefined;
}

export interface ProducerRequest {
  /** Short or full name of a topic or of one partition. */
  readonly topic: string;
  /** Unique among the live producers of the topic (S-45). @default the broker makes one */
  readonly producerName?: string | undefined;
  /** @default 'shared' */
  readonly accessMode?: AccessMode | undefined;
}

/** Of a topic, or of a subscription, that is to go. */
export interface ForceOption {
  /** Disconnects whoever is connected; without it the call is refused then. @default false */
  readonly force?: boolean | undefined;
}

const CONSUMER_FIELDS: readonly (keyof ConsumerRequest)[] = [
  'topic',
  'subscription',
  'type',
  'initialPosition',
  'consumerName',
  'priority',
  'stickyRanges',
  'allowOutOfOrder',
];

/** @throws ConfigurationError */
export function checkConsumerRequest(request: Unchecked<ConsumerRequest>, sink: unknown): void {
  const check = new OptionChecker('subscribe');
  check.methods('sink', sink ?? null, ['deliver', 'activeChanged', 'disconnected'], 'a ConsumerSink');
  if (check.object('request', request)) checkConsumerFields(request, check);
  check.throwIfAny();
}

function checkConsumerFields(request: Unchecked<ConsumerRequest>, check: OptionChecker): void {
  check.unknownOptions(request, CONSUMER_FIELDS);
  check.required(request, {
    subscription: 'a text that is not empty',
    consumerName: 'a text that is not empty',
    type: `one of ${SUBSCRIPTION_TYPES.join(', ')}`,
    initialPosition: 'one of earliest, latest',
  });
  check.nonEmptyString('subscription', request.subscription);
  check.nonEmptyString('consumerName', request.consumerName);
  check.oneOf('type', request.type, SUBSCRIPTION_TYPES);
  check.oneOf('initialPosition', request.initialPosition, ['earliest', 'latest']);
  const { priority } = request;
  if (priority !== undefined && !(Number.isSafeInteger(priority) && Number(priority) >= 0)) {
    check.problem(`"priority" must be a whole number of 0 or more, got ${describeValue(priority)}`);
  }
  for (const problem of keySharedProblems(request)) check.problem(problem);
}

function keySharedProblems({ type, stickyRanges, allowOutOfOrder }: Unchecked<ConsumerRequest>): string[] {
  const problems = stickyRanges === undefined ? [] : stickyRangeProblems(stickyRanges);
  if (allowOutOfOrder !== undefined && typeof allowOutOfOrder !== 'boolean') {
    problems.push(`"allowOutOfOrder" must be true or false, got ${describeValue(allowOutOfOrder)}`);
  }
  if (type !== 'key-shared' && (stickyRanges !== undefined || allowOutOfOrder !== undefined)) {
    problems.push('"stickyRanges" and "allowOutOfOrder" are for key-shared only');
  }
  return problems;
}

/** @throws ConfigurationError */
export function checkProducerRequest(request: Unchecked<ProducerRequest>, disconnected: unknown): void {
  const check = new OptionChecker('producer');
  check.function('disconnected', disconnected);
  if (check.object('request', request)) {
    check.unknownOptions(request, ['topic', 'producerName', 'accessMode']);
    check.nonEmptyString('producerName', request.producerName);
    check.oneOf('accessMode', request.accessMode, ACCESS_MODES);
  }
  check.throwIfAny();
}

/** @throws ConfigurationError */
export function checkForce(call: string, options: Unchecked<ForceOption>): void {
  const check = new OptionChecker(call);
  if (check.object('options', options)) {
    check.unknownOptions(options, ['force']);
    check.boolean('force', options.force);
  }
  check.throwIfAny();
}

/** @throws ConfigurationError */
export function checkSubscriptionName(call: string, subscription: unknown): void {
  const check = new OptionChecker(call);
  check.nonEmptyString('subscription', subscription ?? null);
  check.throwIfAny();
}

/** @throws ConfigurationError */
export function checkExpiry(subscription: unknown, olderThanMs: unknown): void {
  const check = new OptionChecker('expireMessages');
  check.nonEmptyString('subscription', subscription ?? null);
  check.durationMs('olderThanMs', olderThanMs ?? null);
  check.throwIfAny();
}

/** @throws PulseworkError CONFIGURATION_INVALID */
export function checkOrigin(origin: EntryOrigin | null): void {
  const { producerName, sequenceId } = (origin ?? {}) as Unchecked<EntryOrigin>;
  if (typeof producerName !== 'string' || producerName === '') {
    const rule = `"origin" needs the name of a producer, got ${describeValue(producerName)}`;
    throw new PulseworkError('CONFIGURATION_INVALID', rule);
  }
  checkSequenceId(sequenceId);
}

/** @param bytes of this chunk. @throws ConfigurationError */
export function checkChunk(chunk: Unchecked<ChunkOrigin>, bytes: number): void {
  const check = new OptionChecker('publishChunk');
  if (check.object('chunk', chunk)) {
    const { uuid, index, count, totalBytes } = chunk;
    check.unknownOptions(chunk, ['uuid', 'index', 'count', 'totalBytes']);
    check.nonEmptyString('uuid', uuid ?? null);
    if (!isWhole(count) || count < 2) {
      check.problem(`"count" must be a whole number of 2 or more, got ${describeValue(count)}`);
    }
    if (!isWhole(index) || index < 0 || (isWhole(count) && index >= count)) {
      check.problem(`"index" must be a whole number from 0 to "count" - 1, got ${describeValue(index)}`);
    }
    if (!isWhole(totalBytes) || totalBytes < bytes) {
      check.problem(`"totalBytes" must be a whole number of ${bytes} or more, got ${describeValue(totalBytes)}`);
    }
  }
  check.throwIfAny();
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** @throws ConfigurationError */
export function checkPartitions(call: string, partitions: unknown): void {
  const check = new OptionChecker(call);
  check.positiveInteger('partitions', partitions ?? null);
  check.throwIfAny();
}

/** @throws ConfigurationError */
export function checkWatcher(changed: unknown): void {
  const check = new OptionChecker('watchTopics');
  check.function('changed', changed ?? null);
  check.throwIfAny();
}
