// A world with one batch handler, which writes down the batches it gets.
import { z } from 'zod';
import type { BatchOptions, BatchOutcome, Delivery, HandlerOptions, Runtime, RuntimeOptions } from '../../src/index.js';
import { defineHandler, fixedBackoff, seconds, topic } from '../../src/index.js';
import { World, payloadOf } from './runtime-world.js';

export const orders = topic('orders', { payload: z.string() });
export type Orders = readonly Delivery<string>[];
type Options = HandlerOptions & { readonly batch?: BatchOptions; readonly runtime?: Partial<RuntimeOptions> };

export class BatchWorld extends World {
  /** Batches as `payload#attempt ...`, in the order they started. */
  readonly batches: string[] = [];

  /** Batches of 3, and 2 deliveries 1 s apart, unless said otherwise. */
  startBatches(
    handle: (deliveries: Orders) => BatchOutcome | Promise<BatchOutcome>,
    { batch = {}, runtime = {}, ...options }: Options = {},
  ): Promise<Runtime> {
    const handler = defineHandler({
      name: 'h',
      source: orders,
      subscription: 's',
      redelivery: { backoff: fixedBackoff(seconds(1)), maxDeliveries: 2 },
      ...options,
      batch: { maxMessages: 3, ...batch },
      handle: (deliveries) => {
        this.batches.push(deliveries.map(({ payload, attempt }) => `${payload}#${attempt}`).join(' '));
        return handle(deliveries);
      },
    });
    return this.start({ ...runtime, handlers: [handler] });
  }

  /** @param keyed whether the first letter is the key. */
  async publishAll(names: string, keyed = false): Promise<void> {
    for (const name of names.split(' ')) await this.publish('orders', name, keyed ? { key: name[0] } : {});
  }

  async deadLetterPayloads(): Promise<unknown[]> {
    return (await this.deadLetters('orders', 's')).map(payloadOf);
  }

  /** Settlements as `outcome#attempt`. */
  get settled(): readonly string[] {
    return this.reports.map(({ outcome, attempt }) => `${outcome}#${attempt}`);
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, resolve));
  }
}
