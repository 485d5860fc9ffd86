// Plugins in their order: wrappers composed once, observers called one by one and contained. One that hangs costs no other
// its hook, and is named.
import { endsWithin } from '../core/ends-within.js';
import { PulseworkError, containRejection, toError } from '../core/errors.js';
import type { Delivery } from '../core/delivery.js';
import { seconds } from '../core/options.js';
import type { Outcome } from '../core/outcome.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Plugin, PublishRequest } from '../ports/plugin.js';
import type { RuntimeControl } from '../ports/runtime-view.js';
import type { SettlementReport } from '../ports/telemetry.js';
import { startFailed } from './lifecycle.js';
import { NextCall } from './next-call.js';

type Run = (delivery: Delivery) => Outcome | Promise<Outcome>;
type Publish = (request: PublishRequest) => Promise<void>;

/**
 * A start that waits for a plugin says for which one: after one period of a probe that keeps the defaults of Kubernetes
 * (10 s), long before three of them have failed and the process is restarted.
 */
const START_WARNING_MS = seconds(10);

export interface PluginHostOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Milliseconds that closing waits for all plugins together. */
  readonly closeLimitMs: number;
}

export class PluginHost {
  readonly #plugins: readonly Plugin[];
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #closeLimitMs: number;
  /** Those whose `onStart` succeeded: only they are told of the end. */
  readonly #started: Plugin[] = [];
  /** Ends the waits for `aroundPublish` hooks: who publishes must not wait for ever for a plugin that hangs. */
  readonly #publishing = new Set<(error: Error) => void>();
  /** Those whose `onDrain` has not ended. */
  readonly #draining = new Set<Plugin>();
  readonly #settledObservers: readonly Plugin[];
  readonly #deadLetterObservers: readonly Plugin[];

  /** @param plugins in the order of `orderPlugins`. */
  constructor(plugins: readonly Plugin[], { logger, clock, closeLimitMs }: PluginHostOptions) {
    this.#plugins = plugins;
    this.#logger = logger;
    this.#clock = clock;
    this.#closeLimitMs = closeLimitMs;
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
        let giveUp: (error: Error) => void = () => undefined;
        const over = new Promise<never>((_, reject) => (giveUp = reject));
        this.#publishing.add(giveUp);
        try {
          await Promise.race([around(request, (passed) => next.run(passed)), over]);
        } finally {
          this.#publishing.delete(giveUp);
          next.end();
        }
      };
    }, publish);
  }

  /** @throws PulseworkError START_FAILED at the first failing `onStart`: a runtime must not run without a plugin it was given. */
  async start(runtime: RuntimeControl): Promise<void> {
    for (const plugin of this.#plugins) {
      try {
        await this.#namedWhenSlow(plugin, plugin.onStart?.(runtime));
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

  /** Tells all in their order, then waits for all: a slow one must not keep from the others that the runtime drains. */
  async drain(): Promise<void> {
    await Promise.all(
      this.#started.map(async (plugin) => {
        this.#draining.add(plugin);
        await this.#containAsync(plugin, 'onDrain', () => plugin.onDrain?.());
        this.#draining.delete(plugin);
      }),
    );
  }

  /** Says whose `onDrain` has not ended: the drain waits no longer. */
  warnOfDraining(): void {
    for (const plugin of this.#draining) this.#warnOfHanging(plugin, 'onDrain');
  }

  /**
   * In reverse: each when the one before has ended or has used up its share of the time that is left, so that one that
   * hangs costs no other its turn. Then waits for all, until the time is over.
   */
  async close(): Promise<void> {
    await this.#closeHooks();
    const held =
      'aroundPublish of a plugin had not ended when the runtime closed; whether the message was sent is unknown';
    for (const giveUp of this.#publishing) giveUp(new PulseworkError('ALREADY_CLOSED', held));
  }

  async #closeHooks(): Promise<void> {
    const endMs = this.#clock.now() + this.#closeLimitMs;
    const over = new AbortController();
    const open = new Map<Plugin, Promise<void>>();
    for (const [i, plugin] of this.#started.toReversed().entries()) {
      const closing = this.#containAsync(plugin, 'onClose', () => plugin.onClose?.(over.signal));
      open.set(plugin, closing);
      void closing.then(() => open.delete(plugin));
      await endsWithin(this.#clock, closing, (endMs - this.#clock.now()) / (this.#started.length - i));
    }
    if (await endsWithin(this.#clock, Promise.all(open.values()), endMs - this.#clock.now())) return;
    for (const plugin of open.keys()) this.#warnOfHanging(plugin, 'onClose');
    over.abort(new PulseworkError('CALL_TIMED_OUT', `plugins had ${this.#closeLimitMs} ms to close, all together`));
  }

  /** A start has no time limit: a plugin may load what takes long. */
  async #namedWhenSlow(plugin: Plugin, starting: void | Promise<void>): Promise<void> {
    if (starting === undefined) return;
    const timer = this.#clock.setTimer(START_WARNING_MS, () => this.#warnOfHanging(plugin, 'onStart'));
    try {
      await starting;
    } finally {
      timer.cancel();
    }
  }

  #warnOfHanging(plugin: Plugin, hook: string): void {
    this.#logger.warn('plugin hook has not ended', { plugin: plugin.name, hook });
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
