// A dependency of the handler is down: the subscription pauses, one kept delivery is the probe and runs again and
// again; when it ends with anything but `dependencyDown`, everything goes on. No attempt is spent meanwhile.
import type { Outcome } from '../core/outcome.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { Pauses } from './pauses.js';

export class Outage {
  readonly #pauses: Pauses;
  #probe: DeliveryRecord | undefined;
  #dependency: string | undefined;

  constructor(pauses: Pauses) {
    this.#pauses = pauses;
  }

  get open(): boolean {
    return this.#probe !== undefined;
  }

  /** The dependency that is down. */
  get dependency(): string | undefined {
    return this.#dependency;
  }

  isProbe(record: DeliveryRecord): boolean {
    return this.#probe === record;
  }

  /** `record` found `dependency` down. The first to find it is the probe. */
  down(dependency: string, record: DeliveryRecord): void {
    if (this.#probe !== undefined && this.#probe.state !== 'gone') return;
    this.#probe = record;
    this.#dependency = dependency;
    this.#pauses.set('outage', true);
  }

  /** A run ended: the probe's tells whether the dependency is back. */
  probed(record: DeliveryRecord, outcome: Outcome): void {
    if (this.#probe !== record || outcome.kind === 'dependency-down') return;
    this.#probe = undefined;
    this.#dependency = undefined;
    this.#pauses.set('outage', false);
  }
}
