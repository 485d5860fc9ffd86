// The broker's turns: what a call leaves to do runs afterwards, once for many calls, and never inside a call that a
// client makes. So a publish returns before anything it causes, and a thousand publishes cause one dispatch.
import type { Dispatcher } from './dispatcher.js';

export class Turn {
  #dispatchers = new Set<Pick<Dispatcher, 'dispatch'>>();
  #reports: (() => void)[] = [];
  #scheduled = false;

  schedule(dispatcher: Pick<Dispatcher, 'dispatch'>): void {
    this.#dispatchers.add(dispatcher);
    this.#ask();
  }

  later(report: () => void): void {
    this.#reports.push(report);
    this.#ask();
  }

  #ask(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#run());
  }

  #run(): void {
    const dispatchers = this.#dispatchers;
    const reports = this.#reports;
    this.#dispatchers = new Set();
    this.#reports = [];
    this.#scheduled = false;
    for (const report of reports) report();
    for (const dispatcher of dispatchers) dispatcher.dispatch();
  }
}
