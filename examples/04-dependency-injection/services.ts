// A handler class with dependencies, and what it depends on. Nothing here knows the container.
import { inject, injectable, preDestroy } from 'inversify';
import { success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { z } from 'zod';

const Order = z.object({ id: z.string(), customer: z.string() });
export const orders = topic('orders', { payload: Order });

/** A token stands for the interface, so that tests can bind another implementation. */
export const DATABASE = Symbol('Database');

export interface Database {
  save(table: string, id: string): Promise<number>;
}

@injectable()
export class Invoices {
  constructor(@inject(DATABASE) private readonly database: Database) {}

  async create(orderId: string): Promise<string> {
    return `invoice ${await this.database.save('invoices', orderId)}`;
  }
}

@injectable()
@Handler({ subscription: 'invoicing', concurrency: 1 })
export class Invoicing {
  constructor(@inject(Invoices) private readonly invoices: Invoices) {}

  @Subscribe(orders)
  async invoice({ payload: order }: Delivery<z.infer<typeof Order>>): Promise<Outcome> {
    console.log(`order ${order.id} of ${order.customer}: ${await this.invoices.create(order.id)}`);
    return success();
  }

  /** When the runtime has closed: no delivery comes any more. */
  @preDestroy()
  close(): void {
    console.log('Invoicing: closed');
  }
}
