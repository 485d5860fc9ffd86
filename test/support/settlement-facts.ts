// What `settlementFor` is asked with, where a test says nothing else: the first delivery on a Shared subscription.
import { DEFAULT_REDELIVERY_POLICY } from '../../src/core/redelivery-policy.js';
import type { SettlementFacts } from '../../src/core/settlement.js';

export function settlementFacts(more: Partial<SettlementFacts> = {}): SettlementFacts {
  return {
    attempt: 1,
    policy: DEFAULT_REDELIVERY_POLICY,
    type: 'shared',
    ordering: 'none',
    comesAgain: true,
    brokerKeepsOrder: false,
    deadLetter: 'publish',
    keyBlocks: false,
    republishes: false,
    heldFull: false,
    now: 0,
    random: () => 0.5,
    ...more,
  };
}
