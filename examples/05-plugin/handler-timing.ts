// A plugin that measures every run of every handler. It uses nothing but the public Plugin type.
import { performance } from 'node:perf_hooks';
import type { Delivery, Outcome, Plugin } from 'pulsework';

export interface HandlerTimes {
  runs: number;
  totalMs: number;
  slowestMs: number;
}

export class HandlerTiming implements Plugin {
  readonly name = 'handler-timing';
  readonly #times = new Map<string, HandlerTimes>();

  /** By handler name. */
  get times(): ReadonlyMap<string, Readonly<HandlerTimes>> {
    return this.#times;
  }

  /** A run that throws took time too; the error goes on to the handler's `onError` rules. */
  async aroundHandler(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const startedMs = performance.now();
    try {
      return await next();
    } finally {
      this.#add(delivery.handler, performance.now() - startedMs);
    }
  }

  #add(handler: string, elapsedMs: number): void {
    const times = this.#times.get(handler) ?? { runs: 0, totalMs: 0, slowestMs: 0 };
    times.runs += 1;
    times.totalMs += elapsedMs;
    times.slowestMs = Math.max(times.slowestMs, elapsedMs);
    this.#times.set(handler, times);
  }
}
