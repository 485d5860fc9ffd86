// What is wrong with a subscription that is asked for: all of it at once, before any broker is bothered.
import { OptionChecker } from '../../core/options.js';
import { SUBSCRIPTION_FIELDS, checkSubscriptionFields } from '../../core/subscription-spec.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';

const NOTHING = {
  subscription: undefined,
  type: undefined,
  initialPosition: undefined,
  prefetch: undefined,
  consumerName: undefined,
};
/** Of patterns the client has an option of its own; negative acknowledgement in order is for owners that guard keys. */
const KNOWN = SUBSCRIPTION_FIELDS.filter((name) => name !== 'pattern' && name !== 'orderedNegativeAck');

/** Options of an owner beside those of the specification: their names and their check. */
export interface FurtherOptions {
  readonly names: readonly string[];
  readonly check: (check: OptionChecker) => void;
  /** Whether topics must be named. @default true */
  readonly hasTopics?: boolean | undefined;
}

/** @throws ConfigurationError with every problem. */
export function checkSubscriptionSpec(
  spec: { readonly [K in keyof SubscriptionSpec]?: unknown },
  further?: FurtherOptions,
): void {
  const check = new OptionChecker('subscribe');
  if (check.object('spec', spec)) {
    check.unknownOptions(spec, [...KNOWN, ...(further?.names ?? [])]);
    const topics = spec.topics === undefined && further?.hasTopics === false ? ['by pattern'] : spec.topics;
    checkSubscriptionFields({ ...NOTHING, ...spec, topics, pattern: undefined }, check);
  }
  further?.check(check);
  check.throwIfAny();
}
