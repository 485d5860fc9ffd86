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

  /** A kept `record` found `dependency` down, or nothing down. The first to find it is the probe, while it is kept here. */
  found(dependency: string | undefined, record: DeliveryRecord): void {
    if (record.state !== 'kept') return this.isProbe(record) ? this.end() : undefined;
    if (dependency === undefined || this.#probe !== undefined) return;
    this.#probe = record;
    this.#dependency = dependency;
    this.#pauses.set('outage', true);
  }

  /** A run ended: the probe's tells whether the dependency is back. */
  probed(record: DeliveryRecord, outcome: Outcome): void {
    if (this.#probe === record && outcome.kind !== 'dependency-down') this.end();
  }

  /** Also when the connection was lost: the probe may be another process's by then. */
  end(): void {
    this.#probe = undefined;
    this.#dependency = undefined;
    this.#pauses.set('outage', false);
  }
}
