// The SUBSCRIBE of one consumer: how the protocol names what a subscription asks for.
import type { SubscriptionSpec, SubscriptionType } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { CommandBody } from './protocol/commands.js';
import type { ChunkLimits } from '../../chunks/chunk.js';
import type { KeyValue, MessageIdData } from './protocol/message-metadata.js';
import type { SchemaData } from './protocol/schema-commands.js';

/** What a consumer of this client asks for beyond the port's specification. */
export interface ConsumerSpec extends SubscriptionSpec {
  /** What the broker shows beside the consumer. @default none */
  readonly properties?: readonly KeyValue[] | undefined;
  /** Registered for the topic, or checked against what it has. @default none */
  readonly schema?: SchemaData | undefined;
  /** @default DEFAULT_CHUNK_LIMITS */
  readonly chunkLimits?: ChunkLimits | undefined;
  /** Whether a topic that does not exist is made. @default the broker's choice */
  readonly createTopics?: boolean | undefined;
  /**
   * Makes it a reader's: its position is not kept by the broker, each registration begins where this says (that entry
   * included), and the subscription goes with its last consumer. @default the broker keeps the position
   */
  readonly startOf?: ((topic: string) => MessageIdData) | undefined;
}

const TYPE_NUMBERS: Readonly<Record<SubscriptionType, number>> = {
  exclusive: 0,
  shared: 1,
  failover: 2,
  'key-shared': 3,
};
const POSITION_NUMBERS = { latest: 0, earliest: 1 } as const;

export function subscribeBody(
  spec: ConsumerSpec,
  consumer: { readonly topic: string; readonly consumerId: number; readonly consumerEpoch: number },
): Omit<CommandBody<'SUBSCRIBE'>, 'requestId'> {
  const { subscription, type, consumerName, initialPosition, properties, schema, createTopics, startOf } = spec;
  const { topic, consumerId, consumerEpoch } = consumer;
  return {
    topic,
    subscription,
    subType: TYPE_NUMBERS[type],
    consumerId,
    consumerName,
    initialPosition: POSITION_NUMBERS[initialPosition],
    metadata: properties,
    schema,
    forceTopicCreation: createTopics,
    ...(startOf === undefined ? {} : { durable: false, startMessageId: startOf(topic) }),
    ...(type === 'key-shared' ? { keySharedMeta: { keySharedMode: 0 } } : {}),
    ...(redeliversSingly(type) ? {} : { consumerEpoch }),
  };
}
