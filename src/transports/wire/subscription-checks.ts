// What is wrong with a subscription that is asked for: all of it at once, before any broker is bothered.
import { describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';

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
    const { topics, prefetch } = spec;
    if (!Array.isArray(topics) || topics.length === 0) {
      check.problem(`"topics" must be a list of at least one topic name, got ${describeValue(topics)}`);
    }
    check.nonEmptyString('subscription', spec.subscription ?? null);
    check.nonEmptyString('consumerName', spec.consumerName ?? null);
    check.oneOf('type', spec.type ?? null, SUBSCRIPTION_TYPES);
    check.oneOf('initialPosition', spec.initialPosition ?? null, ['earliest', 'latest']);
    if (!Number.isSafeInteger(prefetch) || Number(prefetch) < 0) {
      check.problem(`"prefetch" must be a whole number of 0 or more, got ${describeValue(prefetch)}`);
    }
  }
  further?.check(check);
  check.throwIfAny();
}
