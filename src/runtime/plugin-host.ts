// Plugins in their order: wrappers composed once, observers called one by one and contained.
import { toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { Outcome } from '../core/outcome.js';
import type { Logger } from '../ports/logger.js';
import type { Plugin, PublishRequest } from '../ports/plugin.js';
import type { SettlementReport } from '../ports/telemetry.js';

type Run = (delivery: Delivery) => Outcome | Promise<Outcome>;
type Publish = (request: PublishRequest) => Promise<void>;

export class PluginHost {
  readonly #plugins: readonly Plugin[];
  readonly #logger: Logger;
  readonly #settledObservers: readonly Plugin[];
  readonly #deadLetterObservers: readonly Plugin[];

  /** @param plugins in the order of `orderPlugins`. */
  constructor(plugins: readonly Plugin[], logger: Logger) {
    this.#plugins = plugins;
    this.#logger = logger;
    this.#settledObservers = plugins.filter((plugin) => plugin.onSettled !== undefined);
    this.#deadLetterObservers = plugins.filter((plugin) => plugin.onDeadLettered !== undefined);
  }

  /** Whether any plugin wants to know of settlements. */
  get observesSettlements(): boolean {
    return this.#settledObservers.length + this.#deadLetterObservers.length > 0;
  }

  /** `run` inside every `aroundHandler`, the first plugin outermost. Without such plugins it is `run` itself. */
  wrapHandler(run: Run): Run {
    return this.#plugins.reduceRight<Run>((inner, plugin) => {
      const around = plugin.aroundHandler?.bind(plugin);
      return around === undefined
        ? inner
        : (delivery) =>
            around(
              delivery,
              once(plugin, () => inner(delivery)),
            );
    }, run);
  }

  wrapPublish(publish: Publish): Publish {
    return this.#plugins.reduceRight<Publish>((inner, plugin) => {
      const around = plugin.aroundPublish?.bind(plugin);
      return around === undefined ? inner : (request) => around(request, inner);
    }, publish);
  }

  /** @throws what the first failing `onStart` threw: a runtime must not run without a plugin it was given. */
  async start(): Promise<void> {
    for (const plugin of this.#plugins) await plugin.onStart?.();
  }

  settled(report: SettlementReport): void {
    for (const plugin of this.#settledObservers) this.#contain(plugin, 'onSettled', () => plugin.onSettled?.(report));
    if (report.settlement !== 'dead-letter') return;
    for (const plugin of this.#deadLetterObservers)
      this.#contain(plugin, 'onDeadLettered', () => plugin.onDeadLettered?.(report));
  }

  async drain(): Promise<void> {
    for (const plugin of this.#plugins) await this.#containAsync(plugin, 'onDrain', () => plugin.onDrain?.());
  }

  async close(): Promise<void> {
    for (const plugin of this.#plugins.toReversed())
      await this.#containAsync(plugin, 'onClose', () => plugin.onClose?.());
  }

  #contain(plugin: Plugin, hook: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#report(plugin, hook, error);
    }
  }

  async #containAsync(plugin: Plugin, hook: string, call: () => void | Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#report(plugin, hook, error);
    }
  }

  #report(plugin: Plugin, hook: string, error: unknown): void {
    this.#logger.error('plugin hook failed', { plugin: plugin.name, hook, error: toError(error) });
  }
}

/** A second `next()` would run a handler twice for one delivery. */
function once<T>(plugin: Plugin, next: () => T): () => T {
  let called = false;
  return () => {
    if (called) throw new Error(`plugin "${plugin.name}" called next() twice in aroundHandler`);
    called = true;
    return next();
  };
}

/**
 * Plugins so that each stands after those it names in `after`, else as listed.
 * Problems (duplicate, missing or circular names) are sentences for the ConfigurationError of the start.
 */
export function orderPlugins(plugins: readonly Plugin[]): {
  readonly ordered: readonly Plugin[];
  readonly problems: readonly string[];
} {
  const byName = new Map<string, Plugin>();
  const problems: string[] = [];
  for (const plugin of plugins) {
    if (typeof (plugin.name as unknown) !== 'string' || plugin.name === '') problems.push('a plugin needs a "name"');
    else if (byName.has(plugin.name))
      problems.push(`two plugins are named ${JSON.stringify(plugin.name)}; names must be unique`);
    byName.set(plugin.name, plugin);
  }
  const ordered: Plugin[] = [];
  const visit = (plugin: Plugin, path: readonly string[]): void => {
    if (ordered.includes(plugin)) return;
    if (path.includes(plugin.name)) {
      problems.push(
        `plugins wait for each other: ${[...path.slice(path.indexOf(plugin.name)), plugin.name].join(' after ')}`,
      );
      return;
    }
    for (const name of plugin.after ?? []) {
      const earlier = byName.get(name);
      if (earlier === undefined)
        problems.push(
          `plugin ${JSON.stringify(plugin.name)} must stand after ${JSON.stringify(name)}, which is not there`,
        );
      else visit(earlier, [...path, plugin.name]);
    }
    if (!ordered.includes(plugin)) ordered.push(plugin);
  };
  for (const plugin of plugins) visit(plugin, []);
  return { ordered, problems: [...new Set(problems)] };
}
