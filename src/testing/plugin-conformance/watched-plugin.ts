// A plugin with an eye on every hook: it does what the plugin does, and writes down what the plugin must not do.
import type { Delivery } from '../../core/delivery.js';
import { isOutcome } from '../../core/outcome.js';
import type { Outcome } from '../../core/outcome.js';
import type { Plugin, PublishRequest } from '../../ports/plugin.js';
import type { Ended } from './watched-call.js';
import { WatchedCall, shown } from './watched-call.js';

export interface Watch {
  /** Takes a sentence; the same one may come often. */
  readonly problem: (sentence: string) => void;
  /** Whether the plugin may put its own results in place of those that `next` gives. */
  readonly replaces: boolean;
  /** The publish that goes on now fails with this, in place of reaching the broker. */
  readonly publishFailure: () => Error | undefined;
}

export class WatchedPlugin {
  readonly #plugin: Plugin;
  readonly #watch: Watch;
  /** Hooks whose calls have not ended. */
  readonly #open: string[] = [];
  /** Hooks in the order in which they were called. */
  readonly called: string[] = [];

  constructor(plugin: Plugin, watch: Watch) {
    this.#plugin = plugin;
    this.#watch = watch;
  }

  get unended(): readonly string[] {
    return [...new Set(this.#open)];
  }

  /** What a runtime gets in place of the plugin: with the hooks that it has, since each costs the runtime something. */
  get watched(): Plugin {
    const plugin = this.#plugin;
    const { name, after } = plugin;
    return {
      name,
      after,
      ...(plugin.aroundHandler && { aroundHandler: (delivery, next) => this.#aroundHandler(delivery, next) }),
      ...(plugin.aroundPublish && { aroundPublish: (request, next) => this.#aroundPublish(request, next) }),
      ...(plugin.onStart && { onStart: (runtime) => this.#waited('onStart', () => plugin.onStart?.(runtime)) }),
      ...(plugin.onSettled && { onSettled: (report) => this.#observed('onSettled', () => plugin.onSettled?.(report)) }),
      ...(plugin.onDeadLettered && {
        onDeadLettered: (report) => this.#observed('onDeadLettered', () => plugin.onDeadLettered?.(report)),
      }),
      ...(plugin.onDrain && { onDrain: () => this.#waited('onDrain', () => plugin.onDrain?.()) }),
      ...(plugin.onClose && {
        onClose: (signal?: AbortSignal) => this.#waited('onClose', () => plugin.onClose?.(signal)),
      }),
    };
  }

  async #aroundHandler(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const { problem, replaces } = this.#watch;
    const call = new WatchedCall('aroundHandler', problem);
    const returned = await this.#within('aroundHandler', () =>
      this.#plugin.aroundHandler?.(delivery, () => call.next(next)),
    );
    call.ended(returned, replaces || ('error' in returned && delivery.signal.aborted));
    if ('error' in returned) throw returned.error;
    if (!isOutcome(returned.value)) problem(`aroundHandler must return an outcome, got ${shown(returned.value)}`);
    return returned.value as Outcome;
  }

  async #aroundPublish(request: PublishRequest, next: (request: PublishRequest) => Promise<void>): Promise<void> {
    const { problem, replaces, publishFailure } = this.#watch;
    const call = new WatchedCall('aroundPublish', problem);
    const pass = (passed: PublishRequest): Promise<void> => {
      if (!isPublishRequest(passed))
        problem(`aroundPublish must give next() a topic and a message, got ${shown(passed)}`);
      const failure = publishFailure();
      return failure === undefined ? next(passed) : Promise.reject(failure);
    };
    const returned = await this.#within('aroundPublish', () =>
      this.#plugin.aroundPublish?.(request, (passed) => call.next(() => pass(passed))),
    );
    call.ended(returned, replaces);
    if ('error' in returned) throw returned.error;
  }

  /** What it throws is contained by the runtime all the same, and costs the plugin what it was about to do. */
  #observed(hook: string, call: () => unknown): void {
    this.called.push(hook);
    const failed = (error: unknown): void => this.#watch.problem(`${hook} throws ${shown(error)}`);
    try {
      const result = call();
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  async #waited(hook: string, call: () => unknown): Promise<void> {
    this.called.push(hook);
    const ended = await this.#within(hook, call);
    if (!('error' in ended)) return;
    this.#watch.problem(`${hook} throws ${shown(ended.error)}`);
    throw ended.error;
  }

  async #within(hook: string, call: () => unknown): Promise<Ended> {
    this.#open.push(hook);
    try {
      return { value: await call() };
    } catch (error) {
      return { error };
    } finally {
      this.#open.splice(this.#open.indexOf(hook), 1);
    }
  }
}

function isPublishRequest(value: unknown): boolean {
  const { topic, message } = (value ?? {}) as Partial<PublishRequest>;
  if (typeof topic !== 'string' || typeof message !== 'object') return false;
  return message.payload === null || message.payload instanceof Uint8Array;
}
