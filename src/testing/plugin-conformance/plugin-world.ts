// What the cases of the plugin check run in: an embedded broker on virtual time, a runtime with the plugin, and an end
// that looks at what the plugin has left behind.
import { fixedBackoff } from '../../core/backoff.js';
import { textCodec } from '../../core/codec.js';
import type { BatchHandlerFunction } from '../../core/batch-handler.js';
import type { HandlerFunction } from '../../core/handler-definition.js';
import { defineHandler } from '../../core/handler-definition.js';
import { topic } from '../../core/topic.js';
import { EmbeddedBroker } from '../../broker/embedded-broker.js';
import type { Plugin } from '../../ports/plugin.js';
import type { SettlementReport } from '../../ports/telemetry.js';
import { Runtime } from '../../runtime/runtime.js';
import { systemClock } from '../../system/system-clock.js';
import { memoryMetadataStore } from '../../stores/memory/memory-metadata-store.js';
import { embedded } from '../../transports/embedded/embedded-transport.js';
import { FakeClock } from '../fake-clock.js';
import { WatchedPlugin } from './watched-plugin.js';

export interface PluginCheckOptions {
  /**
   * Whether the plugin puts its own outcomes or errors in place of a handler's, runs without the handler, or keeps
   * messages from being published, on purpose. @default false: all of it is a problem
   */
  readonly replaces?: boolean | undefined;
  /** Whether it lets fewer runs go on at a time than the handler's `concurrency`, on purpose. @default false */
  readonly holdsBack?: boolean | undefined;
}

/** Virtual time passes in these steps; after each, what can happen does. */
const STEP_MS = 100;
/** What must happen may take so long by the runtime's clock, and by the real one for what waits on a socket or a file. */
const PATIENCE_MS = 120_000;
const REAL_PATIENCE_MS = 1_000;
/** From then on real time passes too, 1 ms a step: most plugins need none. */
const STEPS_WITHOUT_REAL_TIME = 20;

export const inbox = topic('inbox', { codec: textCodec });
export const outbox = topic('outbox', { codec: textCodec });

export interface HandlerUnderPlugin {
  readonly handle?: HandlerFunction<string>;
  /** In place of `handle`: batches of up to three. */
  readonly handleBatch?: BatchHandlerFunction<string>;
  readonly concurrency?: number;
}

/** Something waits for ever: what comes after it would only wait as long again. */
export class NeverEnded extends Error {
  override readonly name = 'NeverEnded';
}

export class PluginWorld {
  readonly clock = new FakeClock();
  readonly options: PluginCheckOptions;
  readonly reports: SettlementReport[] = [];
  /** The next publishes fail with it. */
  publishFailure: Error | undefined;
  readonly problem: (sentence: string) => void;
  readonly #broker = new EmbeddedBroker({ clock: this.clock, transactions: { store: memoryMetadataStore() } });
  readonly #plugin: Plugin;
  readonly #watched: WatchedPlugin;
  #runtime: Runtime | undefined;

  constructor(plugin: Plugin, options: PluginCheckOptions, problem: (sentence: string) => void) {
    this.#plugin = plugin;
    this.options = options;
    this.problem = problem;
    this.#watched = new WatchedPlugin(plugin, {
      problem,
      replaces: options.replaces ?? false,
      publishFailure: () => this.publishFailure,
    });
  }

  /** Hooks of the plugin that were called, in order; `around*` not among them. */
  get called(): readonly string[] {
    return this.#watched.called;
  }

  /** @param others plugins beside it. */
  async start(handler: HandlerUnderPlugin = {}, others: readonly Plugin[] = []): Promise<Runtime> {
    const { handle, handleBatch, concurrency = 4 } = handler;
    const redelivery = { backoff: fixedBackoff(STEP_MS), maxDeliveries: 3 };
    const shared = { name: 'handler', source: inbox, subscription: 'checked', redelivery, concurrency };
    const never = (): never => {
      throw new Error('this handler gets no message');
    };
    const definition =
      handleBatch === undefined
        ? defineHandler({ ...shared, handle: handle ?? never })
        : defineHandler({ ...shared, batch: { maxMessages: 3 }, handle: handleBatch });
    // What it must stand after is there, and does nothing.
    const before = (this.#plugin.after ?? []).map((name) => ({ name }));
    const starting = Runtime.start({
      transport: embedded({ broker: this.#broker }),
      clock: this.clock,
      handlers: [definition],
      plugins: [...before, this.#watched.watched, ...others],
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      telemetry: { onSettled: (report) => void this.reports.push(report) },
      drainDeadlineMs: 60_000,
      callTimeoutMs: 60_000,
    });
    this.#runtime = await this.until(starting, 'the start');
    return this.#runtime;
  }

  async publish(...texts: readonly string[]): Promise<void> {
    const encoder = new TextEncoder();
    for (const text of texts) await this.publishBytes(encoder.encode(text));
  }

  async publishBytes(payload: Uint8Array): Promise<void> {
    await this.#broker.publish(inbox.name, { payload, properties: {} });
  }

  /** Resolves after `ms` of virtual time. */
  pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimer(ms, resolve));
  }

  /** What `work` gives. @throws NeverEnded, which names `what` when it does not come. */
  async until<T>(work: Promise<T>, what: string): Promise<T> {
    let settled = false;
    const settle = (): void => void (settled = true);
    work.then(settle, settle);
    await this.eventually(() => settled, what);
    return work;
  }

  /** @throws NeverEnded, which names `what` when `look` does not come to say true. */
  async eventually(look: () => boolean, what: string): Promise<void> {
    const begunMs = systemClock.now();
    await this.clock.advanceBy(0);
    for (let step = 0; !look(); step += 1) {
      if (step * STEP_MS >= PATIENCE_MS && systemClock.now() - begunMs >= REAL_PATIENCE_MS) {
        const open = this.#watched.unended;
        throw new NeverEnded(`${what} never ended${open.length === 0 ? '' : `; ${open.join(', ')} had not ended`}`);
      }
      if (step >= STEPS_WITHOUT_REAL_TIME) await new Promise<void>((next) => void systemClock.setTimer(1, next));
      await this.clock.advanceBy(STEP_MS);
    }
  }

  /** Until each of so many messages needs nothing more. */
  allSettled(count: number): Promise<void> {
    return this.eventually(
      () =>
        this.reports.filter(({ settlement }) => settlement === 'acknowledge' || settlement === 'dead-letter').length >=
        count,
      'a run',
    );
  }

  /** Ends the runtime, and looks at what is left. @throws NeverEnded when a hook still goes on. */
  async end(): Promise<void> {
    const runtime = this.#runtime;
    if (runtime?.state === 'running') await this.until(runtime.close(), 'closing');
    await this.clock.advanceBy(0);
    const timers = this.clock.pendingTimers.length;
    if (timers > 0) this.problem(`after onClose, timers are left on the runtime's clock: ${timers}`);
    const open = this.#watched.unended;
    if (open.length > 0) throw new NeverEnded(`${open.join(', ')} had not ended when the runtime had closed`);
  }
}

function ignore(): void {
  // The check says itself what is wrong.
}
