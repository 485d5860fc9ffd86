// The broker's turns: what a call leaves to do runs afterwards, once for many calls, and never inside a call that a
// client makes. So a publish returns before anything it causes, and a thousand publishes cause one dispatch.
import type { Dispatcher } from './dispatcher.js';

export class Turn {
  #dispatchers = new Set<Pick<Dispatcher, 'dispatch'>>();
  /** Most calls ask for what the one before asked for. */
  #last: Pick<Dispatcher, 'dispatch'> | undefined;
  #reports: (() => void)[] = [];
  #scheduled = false;
  readonly #run = (): void => this.#runAll();

  schedule(dispatcher: Pick<Dispatcher, 'dispatch'>): void {
    if (dispatcher === this.#last) return;
    this.#last = dispatcher;
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
    queueMicrotask(this.#run);
  }

  #runAll(): void {
    const dispatchers = this.#dispatchers;
    const reports = this.#reports;
    this.#dispatchers = new Set();
    this.#last = undefined;
    this.#reports = [];
    this.#scheduled = false;
    for (const report of reports) contained(report);
    for (const dispatcher of dispatchers) contained(() => dispatcher.dispatch());
  }
}

/** What a client throws is no fault of the others: it surfaces as an uncaught error, and the turn goes on. */
function contained(run: () => void): void {
  try {
    run();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
