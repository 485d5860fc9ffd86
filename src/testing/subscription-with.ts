// A subscription with some of its methods replaced: what a test puts between a runtime and its transport. What only health
// asks for is left out.
import type { Subscription } from '../ports/transport.js';

export function subscriptionWith(inner: Subscription, change: Partial<Subscription>): Subscription {
  return {
    receive: (signal) => inner.receive(signal),
    acknowledge: (ids, where) => inner.acknowledge(ids, where),
    acknowledgeCumulative: (id) => inner.acknowledgeCumulative(id),
    redeliver: (ids) => inner.redeliver(ids),
    ...(inner.negativeAcknowledgeOrdered !== undefined && {
      negativeAcknowledgeOrdered: (nacked, returned) => inner.negativeAcknowledgeOrdered?.(nacked, returned),
    }),
    pause: () => inner.pause(),
    resume: () => inner.resume(),
    seek: (to) => inner.seek(to),
    onState: (report) => inner.onState(report),
    close: () => inner.close(),
    ...change,
  };
}
