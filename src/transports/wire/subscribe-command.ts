// The SUBSCRIBE of one consumer: how the protocol names what a subscription asks for.
import type { SubscriptionSpec, SubscriptionType } from '../../core/subscription-spec.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { CommandBody } from './protocol/commands.js';

const TYPE_NUMBERS: Readonly<Record<SubscriptionType, number>> = {
  exclusive: 0,
  shared: 1,
  failover: 2,
  'key-shared': 3,
};
const POSITION_NUMBERS = { latest: 0, earliest: 1 } as const;

export function subscribeBody(
  spec: SubscriptionSpec,
  consumer: { readonly topic: string; readonly consumerId: number; readonly consumerEpoch: number },
): Omit<CommandBody<'SUBSCRIBE'>, 'requestId'> {
  const { subscription, type, consumerName, initialPosition } = spec;
  const { topic, consumerId, consumerEpoch } = consumer;
  return {
    topic,
    subscription,
    subType: TYPE_NUMBERS[type],
    consumerId,
    consumerName,
    initialPosition: POSITION_NUMBERS[initialPosition],
    ...(type === 'key-shared' ? { keySharedMeta: { keySharedMode: 0 } } : {}),
    ...(redeliversSingly(type) ? {} : { consumerEpoch }),
  };
}
