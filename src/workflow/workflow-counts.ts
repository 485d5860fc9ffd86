// How many workflows there are, for gauges: asked of the store now and then, so that whoever collects metrics costs it nothing.
import { toError } from '../core/errors.js';
import { seconds } from '../core/options.js';
import type { ActivationParts } from './activation-parts.js';

/** Often enough for a gauge: metrics are collected every 15 to 60 seconds. */
const INTERVAL_MS = seconds(15);
/** A store in which it takes long is asked less often: at most a hundredth of its time. */
const INTERVAL_PER_DURATION = 100;

export interface WorkflowCountsParts extends Pick<ActivationParts, 'store' | 'clock' | 'logger' | 'telemetry'> {
  readonly names: readonly string[];
}

export class WorkflowCounts {
  readonly #parts: WorkflowCountsParts;
  #nextMs = -Infinity;
  #isOpen = true;

  constructor(parts: WorkflowCountsParts) {
    this.#parts = parts;
  }

  /** Called with each scan. */
  look(): void {
    const { clock, telemetry } = this.#parts;
    const nowMs = clock.now();
    if (!telemetry.wantsCounts || nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + INTERVAL_MS;
    void this.#count(nowMs);
  }

  /** This process counts no more. */
  close(): void {
    this.#isOpen = false;
    if (this.#parts.telemetry.wantsCounts) this.#parts.telemetry.count([]);
  }

  async #count(startedMs: number): Promise<void> {
    const { clock, logger, telemetry, names } = this.#parts;
    try {
      const counts = await this.#parts.store('counting workflows', (store) => store.count(names));
      // A series that is there from the start on reads 0 until there is one.
      const missing = names.filter((name) => !counts.some((count) => count.name === name));
      const none = missing.map((name) => ({ name, status: 'running', count: 0 }) as const);
      if (this.#isOpen) telemetry.count([...counts, ...none]);
    } catch (error) {
      logger.warn('workflows could not be counted', { error: toError(error) });
    }
    const tookMs = clock.now() - startedMs;
    this.#nextMs = Math.max(this.#nextMs, startedMs + tookMs * INTERVAL_PER_DURATION);
  }
}
