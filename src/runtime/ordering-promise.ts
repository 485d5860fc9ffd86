// What a handler may expect of the order of its messages: one sentence per kind of subscription and `ordering`.
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { HandlerPlan } from './handler-plan.js';

/** In one sentence. */
export function orderingPromise({ spec, ordering, concurrency, batch, deadLetter, keyBlocks }: HandlerPlan): string {
  if (ordering === 'none') return unordered(spec.type, concurrency, batch !== undefined);
  const lane = ordering === 'key' ? 'key' : 'partition';
  const given = deadLetter === 'publish' ? 'became a dead letter' : 'was given up';
  const end = keyBlocks
    ? `was acknowledged (one that is given up blocks its ${lane} until a person decides)`
    : `was acknowledged or ${given}`;
  const others = ordering === 'key' ? 'other keys, and messages without a key, go on' : 'other partitions go on';
  return `messages of one ${lane} run one after the other, as published: the next starts only after the one before ${end}; ${others}`;
}

function unordered(type: SubscriptionType, concurrency: number, inBatches: boolean): string {
  const [one, many] = inBatches ? ['one batch', ' batches'] : ['one', ''];
  const runs = concurrency === 1 ? `${one} runs at a time` : `up to ${concurrency}${many} run at a time`;
  switch (type) {
    case 'shared':
      return 'none: messages go to any process in any order';
    case 'key-shared':
      return `none: messages of one key go to one process at a time, where ${runs} and later ones pass one that failed`;
    case 'exclusive':
    case 'failover':
      return `messages start as published, ${runs}, and later ones pass one that failed`;
  }
}
