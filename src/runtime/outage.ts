// Dependencies of a handler are down: the subscription pauses, one kept delivery is the probe of each and runs again and
// again; when it ends with anything but `dependencyDown`, everything goes on, a few at first. No attempt is spent meanwhile.
import type { Outcome } from '../core/outcome.js';
import type { Dependencies, DependencyWatcher } from './dependencies.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { Pauses } from './pauses.js';

export interface OutageOptions {
  readonly pauses: Pauses;
  readonly dependencies: Dependencies;
  /** Dependencies that the handler's rules name: it waits for them whoever finds them down. */
  readonly names: readonly string[];
  /** Runs at a time when nothing is down. */
  readonly maxInFlight: number;
  /** Runs may start again. */
  readonly onBack: () => void;
}

export class Outage implements DependencyWatcher {
  readonly #options: OutageOptions;
  /** What the handler was ever known to need. */
  readonly #needed = new Set<string>();
  /** The delivery that finds out whether a dependency is back, for those that this subscription probes. */
  readonly #probes = new Map<string, DeliveryRecord>();
  #limit: number;

  constructor(options: OutageOptions) {
    this.#options = options;
    this.#limit = options.maxInFlight;
    for (const name of options.names) {
      this.#needed.add(name);
      options.dependencies.watch(name, this);
    }
  }

  get open(): boolean {
    return this.#options.pauses.has('outage');
  }

  /** Which are down. */
  get down(): readonly string[] {
    return [...this.#needed].filter((name) => this.#options.dependencies.isDown(name));
  }

  /**
   * Runs at a time: 1 after an outage, doubling with each that ends without finding one, so that what has just come back is
   * not overrun.
   */
  get maxInFlight(): number {
    return this.#limit;
  }

  isProbe(record: DeliveryRecord): boolean {
    for (const probe of this.#probes.values()) if (probe === record) return true;
    return false;
  }

  /** A kept `record` found `dependency` down. The first to find it is the probe, while it is kept here. */
  found(dependency: string, record: DeliveryRecord): void {
    if (record.state !== 'kept') return this.end(record);
    const { dependencies, pauses } = this.#options;
    this.#needed.add(dependency);
    dependencies.watch(dependency, this);
    // Where nothing may run it would never find out; another delivery will.
    if (!pauses.stopsRuns && dependencies.wentDown(dependency, this)) this.#probes.set(dependency, record);
    // Another subscription may probe it already.
    this.dependenciesChanged();
  }

  /** Nothing runs here for now: what it probed is for another subscription to find out. */
  handOver(): void {
    for (const dependency of this.#probes.keys()) {
      this.#probes.delete(dependency);
      this.#options.dependencies.cameBack(dependency, this);
    }
  }

  /** A run ended with `outcome`: a probe's tells whether its dependency is back. */
  probed(record: DeliveryRecord, outcome: Outcome): void {
    const down = outcome.kind === 'dependency-down' ? outcome.dependency : undefined;
    if (down === undefined && this.#limit < this.#options.maxInFlight)
      this.#limit = Math.min(this.#limit * 2, this.#options.maxInFlight);
    if (this.#probes.size > 0) this.#endProbes(record, down);
  }

  /** The record is no longer here, whatever it would have found: it may be another process's by now. */
  end(record: DeliveryRecord): void {
    this.#endProbes(record, undefined);
  }

  dependenciesChanged(): void {
    const isDown = this.down.length > 0;
    if (!this.#options.pauses.set('outage', isDown) || isDown) return;
    this.#limit = 1;
    this.#options.onBack();
  }

  #endProbes(record: DeliveryRecord, except: string | undefined): void {
    for (const [dependency, probe] of this.#probes) {
      if (probe !== record || dependency === except) continue;
      this.#probes.delete(dependency);
      this.#options.dependencies.cameBack(dependency, this);
    }
  }
}
