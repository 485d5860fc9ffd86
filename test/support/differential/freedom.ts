// What Pulsar leaves open, by type, number of consumers and what was done: the one place that says so, each with its reason.
import type { Action } from './actions.js';
import type { SubscriptionPlan } from './program.js';

/**
 * How what came is compared.
 * - `sequence`: at each consumer the same messages in the same order. Between two consumers there is no order.
 * - `newest`: what is held, by whom, in which order it came last. Failover with several consumers: when one of them comes, goes or
 *   is disconnected, another one may be active for a moment, and what it gets is sent again to the next (S-03).
 * - `anyone`: what is held, by whomever, in whatever order, and how much came. Shared with several consumers: whose turn it
 *   is depends on how many entries the broker read at once (S-04), which depends on when they were stored.
 * - `held`: the same, but not how much came. When one of several Shared consumers leaves, it gives back what it happened to
 *   have; when all are disconnected, the first that is back may get what comes again and the rest has to share what is left.
 * - `swept`: the same messages, each as often. Key_Shared with several consumers that were all disconnected: they come back
 *   one by one, and the first gets the keys of all. Who holds what is a matter of their order, and so is what has to wait for
 *   it (K-10). So the run acknowledges whatever comes at once.
 */
export type Freedom = 'sequence' | 'newest' | 'anyone' | 'held' | 'swept';

/** @param consumers how many there were when it was done, the one that left included. */
export function freedomOf(plan: SubscriptionPlan, consumers: number, sub: number, action: Action): Freedom {
  if (consumers < 2) return 'sequence';
  // They leave one after the other, and what one gives back goes to the next.
  if (action.step.do === 'finish' && action.step.sub === sub) return 'newest';
  switch (plan.type) {
    case 'exclusive':
      return 'sequence';
    case 'failover':
      return 'newest';
    case 'shared':
      return disconnectsAll(sub, action) || (action.step.do === 'close' && action.step.sub === sub) ? 'held' : 'anyone';
    case 'key-shared':
      return plan.flow === 'wide' && disconnectsAll(sub, action) ? 'swept' : 'sequence';
  }
}

function disconnectsAll(sub: number, { step }: Action): boolean {
  return step.do === 'unload' || (step.do === 'seek' && step.sub === sub);
}
