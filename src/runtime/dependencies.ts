// What the handlers of a runtime need and which of it is down. One subscription finds it out and probes it; all that
// name the same dependency wait, so that not each of them has to find out by failing.

/** A subscription that wants to know. */
export interface DependencyWatcher {
  /** One of the dependencies it watches went down or came back. */
  dependenciesChanged(): void;
}

export class Dependencies {
  readonly #watchers = new Map<string, Set<DependencyWatcher>>();
  /** By dependency that is down: the subscription whose kept delivery is the probe. */
  readonly #probedBy = new Map<string, DependencyWatcher>();

  isDown(dependency: string): boolean {
    return this.#probedBy.has(dependency);
  }

  watch(dependency: string, watcher: DependencyWatcher): void {
    const watchers = this.#watchers.get(dependency);
    if (watchers === undefined) this.#watchers.set(dependency, new Set([watcher]));
    else watchers.add(watcher);
  }

  /** True for the first to find it down: a delivery of that subscription is the probe. */
  wentDown(dependency: string, finder: DependencyWatcher): boolean {
    this.watch(dependency, finder);
    if (this.#probedBy.has(dependency)) return false;
    this.#probedBy.set(dependency, finder);
    this.#tell(dependency);
    return true;
  }

  /** Its probe found it working, or is no longer here: the next delivery that finds it down makes a new one. */
  cameBack(dependency: string, finder: DependencyWatcher): void {
    if (this.#probedBy.get(dependency) !== finder) return;
    this.#probedBy.delete(dependency);
    this.#tell(dependency);
  }

  #tell(dependency: string): void {
    for (const watcher of this.#watchers.get(dependency) ?? []) watcher.dependenciesChanged();
  }
}
