// Which workflows are worked on now: what has become due or had something happen to it, a bounded number at a time. What is due
// is found by a scan; what becomes due before the next one has a timer of its own.
import { PulseworkError, toError } from '../core/errors.js';
import { hours, seconds } from '../core/options.js';
import type { Timer } from '../ports/clock.js';
import type { WorkflowKey } from '../ports/workflow-store.js';
import { Activation } from './activation.js';
import type { ActivationParts } from './activation-parts.js';
import { keyText } from './workflow-ids.js';

/** Of one scan: more are found by the next one, which follows at once. */
const SCAN_LIMIT = 1_000;
const PURGE_LIMIT = 1_000;
/** Between two scans, when there is more than one of them finds. */
const MIN_SCAN_MS = 100;
/** After what failed: a store that is down is asked again so often. */
const RETRY_MS = seconds(5);
/** Ended workflows may stay so much longer than was asked for. */
const PURGE_INTERVAL_MS = hours(1);

export interface ActivationsOptions {
  readonly parts: ActivationParts;
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly scanIntervalMs: number;
  readonly retentionMs: number;
  /** Called with each scan. */
  readonly onScan: () => void;
}

export class Activations {
  readonly #options: ActivationsOptions;
  readonly #active = new Map<string, Activation>();
  /** In the order in which they came. */
  readonly #queue = new Map<string, WorkflowKey>();
  readonly #timers = new Map<string, { readonly wakeMs: number; readonly timer: Timer }>();
  #scan: Timer | undefined;
  #purgedMs = -Infinity;
  #isOpen = true;
  #onIdle: (() => void) | undefined;

  constructor(options: ActivationsOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#scanNow();
  }

  /** Something has happened to it, or it is due. */
  wake(key: WorkflowKey): void {
    const text = keyText(key);
    if (!this.#isOpen) return;
    const active = this.#active.get(text);
    if (active !== undefined) active.wake();
    else this.#queue.set(text, key);
    this.#fill();
  }

  /** Takes nothing new; resolves when what runs has ended. */
  async drain(): Promise<void> {
    this.#close();
    for (const activation of this.#active.values()) activation.drain();
    if (this.#active.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  interrupt(reason: Error): void {
    for (const activation of this.#active.values()) activation.interrupt(reason);
  }

  /** What still runs is left to other processes. */
  abandon(): void {
    this.#close();
    for (const activation of this.#active.values()) activation.abandon();
  }

  #close(): void {
    this.#isOpen = false;
    this.#scan?.cancel();
    for (const { timer } of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#queue.clear();
  }

  #fill(): void {
    for (const [text, key] of this.#queue) {
      if (this.#active.size >= this.#options.concurrency) return;
      this.#queue.delete(text);
      const activation = new Activation(key, this.#options.parts);
      this.#active.set(text, activation);
      void this.#run(text, key, activation);
    }
  }

  async #run(text: string, key: WorkflowKey, activation: Activation): Promise<void> {
    let wakeMs: number | undefined;
    let hasFailed = false;
    try {
      wakeMs = await activation.run();
    } catch (error) {
      // Its lease ends, and whoever finds it then goes on.
      const isLost = error instanceof PulseworkError && error.code === 'WORKFLOW_LEASE_LOST';
      const { logger } = this.#options.parts;
      const about = { workflow: key.name, id: key.id, error: toError(error) };
      if (isLost) logger.info('workflow is left to another process', about);
      else logger.warn('workflow activation failed; it is tried again', about);
      hasFailed = true;
      // It may hold a lease of which it does not know.
      wakeMs = this.#options.parts.clock.now() + this.#options.parts.leaseMs;
    }
    this.#active.delete(text);
    if (this.#isOpen) {
      // What woke it in its last moment may not have been seen.
      if (activation.wasWoken && !hasFailed) this.wake(key);
      else this.#wakeLater(key, activation, wakeMs);
      this.#fill();
    }
    if (this.#active.size === 0) this.#onIdle?.();
  }

  /** A timer that is set stays where another one has the workflow: that one's lease may be nobody's. */
  #wakeLater(key: WorkflowKey, { wasTaken }: Activation, wakeMs: number | undefined): void {
    if (wasTaken) this.#cancel(keyText(key));
    if (wakeMs !== undefined) this.#wakeAt(key, wakeMs);
  }

  #cancel(text: string): void {
    this.#timers.get(text)?.timer.cancel();
    this.#timers.delete(text);
  }

  /** When it is due before the next scan; the others are found by that. */
  #wakeAt(key: WorkflowKey, wakeMs: number): void {
    const delayMs = wakeMs - this.#options.parts.clock.now();
    const text = keyText(key);
    if (delayMs > this.#options.scanIntervalMs || this.#active.has(text)) return;
    if ((this.#timers.get(text)?.wakeMs ?? Infinity) <= wakeMs) return;
    this.#cancel(text);
    const run = (): void => {
      this.#timers.delete(text);
      this.wake(key);
    };
    this.#timers.set(text, { wakeMs, timer: this.#options.parts.clock.setTimer(Math.max(0, delayMs), run) });
  }

  async #scanNow(): Promise<void> {
    const { parts, names, scanIntervalMs } = this.#options;
    let nextMs = scanIntervalMs;
    try {
      const nowMs = parts.clock.now();
      const question = { names, beforeMs: nowMs + scanIntervalMs, limit: SCAN_LIMIT };
      const due = await parts.store('looking for what is due', (store) => store.due(question));
      // There are more: behind the last of these.
      const last = due.length === SCAN_LIMIT ? due.at(-1) : undefined;
      if (last !== undefined) nextMs = Math.min(scanIntervalMs, Math.max(MIN_SCAN_MS, last.wakeMs - nowMs));
      for (const { name, id, wakeMs } of due) {
        if (wakeMs > nowMs) this.#wakeAt({ name, id }, wakeMs);
        else if (!this.#active.has(keyText({ name, id }))) this.wake({ name, id });
      }
      await this.#purge(nowMs);
    } catch (error) {
      parts.logger.warn('the scan for due workflows failed', { error: toError(error) });
      nextMs = Math.min(RETRY_MS, scanIntervalMs);
    }
    if (!this.#isOpen) return;
    this.#options.onScan();
    this.#scan = parts.clock.setTimer(nextMs, () => void this.#scanNow());
  }

  async #purge(nowMs: number): Promise<void> {
    const { parts, retentionMs } = this.#options;
    if (nowMs - this.#purgedMs < PURGE_INTERVAL_MS) return;
    const times = { nowMs, endedBeforeMs: nowMs - retentionMs, limit: PURGE_LIMIT };
    const purged = await parts.store('forgetting ended workflows', (store) => store.purge(times));
    if (purged < PURGE_LIMIT) this.#purgedMs = nowMs;
  }
}
