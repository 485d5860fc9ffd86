// How much of a subscription may wait here unacknowledged: ids that wait to be asked back, deliveries kept in place, and
// what stands in line behind a key or for its share. At the limit nothing new comes before something that waits has gone.
import type { DeliveryRegistry } from './delivery-registry.js';
import type { HandlerPlan } from './handler-plan.js';
import type { KeptDeliveries } from './kept-deliveries.js';
import type { Lanes } from './lanes.js';
import type { ReadyDeliveries } from './ready-deliveries.js';

/** A subscription that was full goes on at this share of its limits, so that it does not pause at every message. */
const RESUME_AT = 0.9;

export interface HoldingLimitsOptions {
  readonly plan: HandlerPlan;
  readonly registry: Pick<DeliveryRegistry, 'heldCount'>;
  readonly kept: KeptDeliveries;
  readonly lanes: Lanes;
  readonly ready: ReadyDeliveries;
}

export class HoldingLimits {
  readonly #options: HoldingLimitsOptions;

  constructor(options: HoldingLimitsOptions) {
    this.#options = options;
  }

  /** Whether as many deliveries wait here as may. */
  get full(): boolean {
    const { registry, kept, plan } = this.#options;
    return registry.heldCount + kept.size >= plan.maxHeld;
  }

  /** The key with as many messages waiting as may, behind its head or for its share; undefined when there is none. */
  get fullKey(): string | undefined {
    const { lanes, ready } = this.#options;
    return lanes.fullKey ?? ready.fullKey;
  }

  /** Deliveries that wait because of their key's share. */
  get throttled(): number {
    return this.#options.ready.throttled;
  }

  /** Whether nothing new may come. What can be published again does not wait here. @param waiting whether that is so already */
  mustWait(waiting: boolean): boolean {
    const { plan, registry, kept, lanes, ready } = this.#options;
    const share = waiting ? RESUME_AT : 1;
    // Held beyond the limit is what could not be published again.
    const published = plan.retry !== undefined && !plan.delaysInClient;
    const held = published ? Math.max(0, registry.heldCount - plan.maxHeld) : registry.heldCount;
    const bytes = kept.bytes + lanes.waitingBytes + ready.throttledBytes;
    return held + kept.size >= plan.maxHeld * share || bytes >= plan.maxHeldBytes * share;
  }
}
