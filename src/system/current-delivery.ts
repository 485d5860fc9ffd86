// Which delivery the code that runs belongs to. Only used where the runtime was asked for it: from the first use on every
// promise of the process costs more.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Delivery } from '../core/delivery.js';

const storage = new AsyncLocalStorage<Delivery | undefined>();

/**
 * The delivery whose handler called this, however deep and after whatever it awaited; undefined outside handlers, in a
 * batch handler (which has many), and without the option `currentDelivery: true` of the runtime.
 */
export function currentDelivery(): Delivery | undefined {
  return storage.getStore();
}

/** Calls `run`; `currentDelivery()` is `delivery` in all that it starts. */
export function withCurrentDelivery<T>(delivery: Delivery | undefined, run: () => T): T {
  return storage.run(delivery, run);
}
