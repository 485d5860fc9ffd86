// Plugins in their order: wrappers composed once, observers called one by one and contained.
import { containRejection, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import type { Outcome } from '../core/outcome.js';
import type { Logger } from '../ports/logger.js';
import type { Plugin, PublishRequest } from '../ports/plugin.js';
import type { RuntimeControl } from '../ports/runtime-view.js';
import type { SettlementReport } from '../ports/telemetry.js';
import { startFailed } from './lifecycle.js';

type Run = (delivery: Delivery) => Outcome | Promise<Outcome>;
type Publish = (request: PublishRequest) => Promise<void>;

export class PluginHost {
  readonly #plugins: readonly Plugin[];
  readonly #logger: Logger;
  /** Those whose `onStart` succeeded: only they are told of the end. */
  readonly #started: Plugin[] = [];
  readonly #settledObservers: readonly Plugin[];
  readonly #deadLetterObservers: readonly Plugin[];

  /** @param plugins in the order of `orderPlugins`. */
  constructor(plugins: readonly Plugin[], logger: Logger) {
    this.#plugins = plugins;
    this.#logger = logger;
    this.#settledObservers = plugins.filter((plugin) => plugin.onSettled !== undefined);
    this.#deadLetterObservers = plugins.filter((plugin) => plugin.onDeadLettered !== undefined);
  }

  /** Whether any plugin stands around publishes. */
  get wrapsPublish(): boolean {
    return this.#plugins.some((plugin) => plugin.aroundPublish !== undefined);
  }

  /** Whether any plugin wants to know of settlements. */
  get observesSettlements(): boolean {
    return this.#settledObservers.length + this.#deadLetterObservers.length > 0;
  }

  /** `run` inside every `aroundHandler`, the first plugin outermost. Without such plugins it is `run` itself. */
  wrapHandler(run: Run): Run {
    return this.#plugins.reduceRight<Run>((inner, plugin) => {
      const around = plugin.aroundHandler?.bind(plugin);
      if (around === undefined) return inner;
      return async (delivery) => {
        const next = new NextCall(plugin, 'aroundHandler', () => inner(delivery));
        try {
          return await around(delivery, () => {
            const outcome = next.run();
            // A plugin that does not wait for it must not end the process by its rejection.
            containRejection(outcome);
            return outcome;
          });
        } finally {
          next.end();
        }
      };
    }, run);
  }

  wrapPublish(publish: Publish): Publish {
    return this.#plugins.reduceRight<Publish>((inner, plugin) => {
      const around = plugin.aroundPublish?.bind(plugin);
      if (around === undefined) return inner;
      return async (request) => {
        const next = new NextCall(plugin, 'aroundPublish', inner);
        try {
          await around(request, (passed) => next.run(passed));
        } finally {
          next.end();
        }
      };
    }, publish);
  }

  /** @throws PulseworkError START_FAILED at the first failing `onStart`: a runtime must not run without a plugin it was given. */
  async start(runtime: RuntimeControl): Promise<void> {
    for (const plugin of this.#plugins) {
      try {
        await plugin.onStart?.(runtime);
      } catch (error) {
        throw startFailed(`plugin ${JSON.stringify(plugin.name)}`, error);
      }
      this.#started.push(plugin);
    }
  }

  settled(report: SettlementReport): void {
    for (const plugin of this.#settledObservers) this.#contain(plugin, 'onSettled', () => plugin.onSettled?.(report));
    if (report.settlement !== 'dead-letter') return;
    for (const plugin of this.#deadLetterObservers)
      this.#contain(plugin, 'onDeadLettered', () => plugin.onDeadLettered?.(report));
  }

  async drain(): Promise<void> {
    for (const plugin of this.#started) await this.#containAsync(plugin, 'onDrain', () => plugin.onDrain?.());
  }

  async close(): Promise<void> {
    for (const plugin of this.#started.toReversed())
      await this.#containAsync(plugin, 'onClose', () => plugin.onClose?.());
  }

  /** Observers are not awaited; one that gives a promise all the same must not end the process by its rejection. */
  #contain(plugin: Plugin, hook: string, call: () => unknown): void {
    try {
      containRejection(call(), (error) => this.#report(plugin, hook, error));
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

/** A plugin's `next`: once, and only while the hook runs. Later or twice would run a handler, or send, again. */
class NextCall<A extends unknown[], T> {
  readonly #plugin: Plugin;
  readonly #hook: string;
  readonly #next: (...args: A) => T;
  #over: 'called twice' | 'called after its hook had ended' | undefined;

  constructor(plugin: Plugin, hook: string, next: (...args: A) => T) {
    this.#plugin = plugin;
    this.#hook = hook;
    this.#next = next;
  }

  run(...args: A): T {
    if (this.#over !== undefined)
      throw new Error(`plugin "${this.#plugin.name}": next() of ${this.#hook} was ${this.#over}`);
    this.#over = 'called twice';
    return this.#next(...args);
  }

  end(): void {
    this.#over = 'called after its hook had ended';
  }
}
