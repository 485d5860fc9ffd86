// A small service whose broker lives in its own process and keeps its messages in one file.
import { setTimeout as sleep } from 'node:timers/promises';
import { Runtime, consoleLogger, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { embedded } from 'pulsework/embedded';
import { sqliteStore } from 'pulsework/sqlite';
import { z } from 'zod';
import { startFailed, topics, transport } from '../broker.js';

export const Order = z.object({ number: z.int() });
export type Order = z.infer<typeof Order>;
export const orders = topic('orders', { payload: Order });

const WORK_MS = 25;

@Handler({ subscription: 'billing' })
export class Billing {
  @Subscribe(orders, { concurrency: 1 })
  async charge({ payload: order }: Delivery<Order>): Promise<Outcome> {
    await sleep(WORK_MS);
    console.log(`charged ${order.number}`);
    return success();
  }
}

/** Until a signal. @param publishes how many orders it publishes itself. */
export async function serve(dir: string, publishes: number): Promise<void> {
  const runtime = await Runtime.start({
    // The one line to change when the service outgrows its own process: wire({ serviceUrl }).
    transport: transport.name === 'embedded' ? embedded({ store: sqliteStore({ dir }) }) : transport,
    topics,
    handlers: [Billing],
    logger: consoleLogger({ level: 'silent' }),
  }).catch(startFailed);
  process.once('SIGTERM', () => void runtime.drain());

  const publisher = runtime.publisher(orders);
  for (let number = 1; number <= publishes; number++) {
    await publisher.publish({ number });
    // The receipt is here: the order is on the disk.
    console.log(`published ${number}`);
  }
  await runtime.closed;
}
