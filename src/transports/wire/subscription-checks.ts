// What is wrong with a subscription that is asked for: all of it at once, before any broker is bothered.
import { OptionChecker } from '../../core/options.js';
import { checkSubscriptionFields } from '../../core/subscription-spec.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';

const KNOWN = ['topics', 'subscription', 'type', 'initialPosition', 'prefetch', 'consumerName'];

/** Options of an owner beside those of the specification: their names and their check. */
export interface FurtherOptions {
  readonly names: readonly string[];
  readonly check: (check: OptionChecker) => void;
}

/** @throws ConfigurationError with every problem. */
export function checkSubscriptionSpec(
  spec: { readonly [K in keyof SubscriptionSpec]: unknown },
  further?: FurtherOptions,
): void {
  const check = new OptionChecker('subscribe');
  if (check.object('spec', spec)) {
    check.unknownOptions(spec, [...KNOWN, ...(further?.names ?? [])]);
    checkSubscriptionFields(spec, check);
  }
  further?.check(check);
  check.throwIfAny();
}
