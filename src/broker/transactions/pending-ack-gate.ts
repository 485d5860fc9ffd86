// Nothing is done about pending acknowledgements before what was kept of them is known again: calls that come earlier wait,
// and start in their order (T-20).
import { containRejection } from '../../core/errors.js';
import * as errors from './pending-ack-errors.js';
import type { PendingAckStore } from './pending-ack-store.js';

/** `error`: what was kept could not be read. It stays so until the subscription is opened anew (T-20). */
export type PendingAcksState = 'none' | 'initializing' | 'ready' | 'error' | 'closed';

interface Waiting {
  readonly start: () => void;
  readonly refuse: (error: Error) => void;
}

export interface GateSteps {
  open(): Promise<PendingAckStore>;
  /** What the store kept is pending again. */
  replay(store: PendingAckStore): Promise<void>;
}

export class PendingAckGate {
  readonly #steps: GateSteps;
  #state: PendingAcksState = 'none';
  #store: PendingAckStore | undefined;
  #opening: Promise<void> | undefined;
  #failure: unknown;
  readonly #waiting: Waiting[] = [];

  constructor(steps: GateSteps) {
    this.#steps = steps;
  }

  get state(): PendingAcksState {
    return this.#state;
  }

  /** Undefined unless it is ready. */
  get store(): PendingAckStore | undefined {
    return this.#state === 'ready' ? this.#store : undefined;
  }

  /** Resolves when it is ready. @throws TransportError BROKER_ERROR, retriable. */
  async open(): Promise<void> {
    if (this.#isClosed) throw errors.pendingAcksClosed();
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Now, or as soon as it is ready. @throws TransportError BROKER_ERROR, retriable, in the states `error` and `closed`. */
  async pass(call: (store: PendingAckStore) => Promise<void>): Promise<void> {
    if (this.#isClosed) throw errors.pendingAcksClosed();
    if (this.#state === 'error') throw errors.notReplayed(this.#failure);
    const { store } = this;
    if (store !== undefined) return call(store);
    const passed = new Promise<void>((resolve, reject) => {
      const start = (): void => void this.pass(call).then(resolve, reject);
      this.#waiting.push({ start, refuse: reject });
    });
    containRejection(this.open());
    return passed;
  }

  /** Lets nothing pass any more. @param underWay what passed before: the store is closed after it. */
  async close(underWay: () => Promise<unknown>): Promise<void> {
    this.#state = 'closed';
    this.#refuseWaiting(errors.pendingAcksClosed());
    await underWay();
    await this.#store?.close();
    // It may be bringing back what was kept, and must not do so to a subscription that somebody else has by now.
    await this.#opening?.catch(() => undefined);
  }

  get #isClosed(): boolean {
    return this.#state === 'closed';
  }

  async #open(): Promise<void> {
    this.#state = 'initializing';
    try {
      this.#store = await this.#steps.open();
      if (!this.#isClosed) await this.#steps.replay(this.#store);
    } catch (cause) {
      await this.#failed(cause);
    }
    if (this.#isClosed) {
      await this.#store?.close();
      throw errors.pendingAcksClosed();
    }
    this.#state = 'ready';
    for (const { start } of this.#waiting.splice(0)) start();
    // For what was told while nobody listened (T-41).
    void this.#store?.reconcile();
  }

  async #failed(cause: unknown): Promise<void> {
    if (this.#isClosed) return;
    this.#state = 'error';
    this.#failure = cause;
    const error = errors.notReplayed(cause);
    this.#refuseWaiting(error);
    await this.#store?.close().catch(() => undefined);
    throw error;
  }

  #refuseWaiting(error: Error): void {
    for (const { refuse } of this.#waiting.splice(0)) refuse(error);
  }
}
