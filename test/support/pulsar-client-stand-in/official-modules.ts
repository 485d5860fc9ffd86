// What tests of the adapter for the official client run on: the stand-in, and the real package where its addon loads.
import type { SubscriptionSpec } from 'pulsework';
import type { OfficialModule } from 'pulsework/pulsar';
import { loadOfficialModule } from '../../../src/transports/pulsar/official-client.js';

/** The real package, or why it cannot be loaded here, in one line. */
export const realModule: OfficialModule | string = await loadOfficialModule().catch(
  (error: unknown) => (error as Error).message,
);

/** Subscription `s`, Shared, from the earliest message on, unless told otherwise. */
export function specOf(topic: string, more: Partial<SubscriptionSpec> = {}): SubscriptionSpec {
  const spec = { subscription: 's', type: 'shared', initialPosition: 'earliest', prefetch: 100, consumerName: 'c' };
  return { topics: [topic], ...(spec as Omit<SubscriptionSpec, 'topics'>), ...more };
}
