// One process after the other, each with what goes wrong in it: when one ends, another one takes its place a while later.
import type { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import type { Transport } from '../../../src/ports/transport.js';
import type { WorkflowStore } from '../../../src/ports/workflow-store.js';
import { WORKFLOW_STORE_METHODS } from '../../../src/ports/workflow-store.js';
import { FaultyTransport } from '../../../src/testing/faulty-transport.js';
import type { FakeClock } from '../../../src/testing/fake-clock.js';
import { embedded } from '../../../src/transports/embedded/embedded-transport.js';
import { ProcessClock } from './process-clock.js';
import type { Step } from './program.js';
import { storeWith } from './watched-store.js';

export type FaultStep = Extract<Step, { readonly do: 'fault' }>;

export interface WorkerPlace {
  readonly clock: FakeClock;
  readonly broker: EmbeddedBroker;
  readonly store: WorkflowStore;
  /** For the next process of the run. */
  faultsOfNext(): readonly FaultStep[];
  /** Starts the service; rejects where it cannot start. */
  serve(transport: Transport, store: WorkflowStore, clock: ProcessClock): Promise<void>;
  /** Until the next process is there. */
  restartMs(): number;
}

export class Worker {
  readonly #place: WorkerPlace;
  #clock: ProcessClock | undefined;
  #end: (() => void) | undefined;
  #cutUntilMs = -Infinity;
  /** Calls of the first process that could have gone wrong. */
  #first: FaultyTransport | undefined;

  constructor(place: WorkerPlace) {
    this.#place = place;
  }

  get calls(): number {
    return this.#first?.counted ?? 0;
  }

  start(): void {
    const { broker, clock: worldClock } = this.#place;
    const clock = new ProcessClock(worldClock);
    const inner = embedded({ broker });
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      clock.end();
      void inner.close();
      worldClock.setTimer(this.#place.restartMs(), () => this.start());
    };
    const none: FaultStep = { do: 'fault', process: 0, at: 0, fault: 'throws' };
    const faults = this.#place.faultsOfNext();
    const faulty = [none, ...faults].reduce<readonly FaultyTransport[]>((before, { at, fault }) => {
      const plan = { at, fault, clock, onGone: end };
      return [...before, new FaultyTransport(before.at(-1) ?? inner, plan)];
    }, []);
    const transport = faulty.at(-1) as FaultyTransport;
    this.#first ??= faulty[0];
    const reached = storeWith(
      this.#place.store,
      this.#reachable(() => isOver),
    );
    const store = faulty.reduce((wrapped, each) => each.store(wrapped, WORKFLOW_STORE_METHODS), reached);
    this.#clock = clock;
    this.#end = end;
    // A service that cannot start ends, and is started again.
    this.#place.serve(transport, store, clock).catch(end);
  }

  kill(): void {
    this.#end?.();
  }

  freeze(forMs: number): void {
    this.#clock?.freeze(this.#place.clock.now() + forMs);
  }

  /** From the store. */
  cut(forMs: number): void {
    this.#cutUntilMs = this.#place.clock.now() + forMs;
  }

  #reachable(isOver: () => boolean): Record<string, unknown> {
    const methods: Record<string, unknown> = {};
    for (const name of WORKFLOW_STORE_METHODS) {
      const call = this.#place.store[name].bind(this.#place.store) as (...args: unknown[]) => Promise<unknown>;
      methods[name] = (...args: unknown[]): Promise<unknown> => {
        if (isOver()) return new Promise(() => undefined);
        if (this.#place.clock.now() < this.#cutUntilMs) return Promise.reject(new Error('the store is out of reach'));
        return call(...args);
      };
    }
    return methods;
  }
}
