// An order, from the charge to the receipt, as one method. It may take two weeks and many deploys; what it did is undone when it fails.
import { days, hours, topic } from 'pulsework';
import type { Flow } from 'pulsework/workflow';
import { Workflow } from 'pulsework/workflow';
import { inject, injectable } from 'inversify';
import { z } from 'zod';

export const Order = z.object({ id: z.string(), item: z.string(), amount: z.number().positive() });
export type Order = z.infer<typeof Order>;
export const Receipt = z.object({ orderId: z.string(), chargeId: z.string() });
export type Receipt = z.infer<typeof Receipt>;
const Packed = z.object({ by: z.string() });

export const receipts = topic('receipts', { payload: Receipt });

export abstract class Payments {
  abstract charge(order: Order, idempotencyKey: string): Promise<{ readonly id: string }>;
  abstract refund(chargeId: string): Promise<void>;
}

export abstract class Stock {
  abstract reserve(order: Order): Promise<void>;
  abstract release(orderId: string): Promise<void>;
}

@injectable()
@Workflow('fulfil-order', { version: 1, input: Order, result: Receipt, signals: { packed: Packed } })
export class FulfilOrder {
  readonly #payments: Payments;
  readonly #stock: Stock;

  constructor(@inject(Payments) payments: Payments, @inject(Stock) stock: Stock) {
    this.#payments = payments;
    this.#stock = stock;
  }

  async run(flow: Flow, order: Order): Promise<Receipt> {
    let stage = 'paying';
    flow.query('stage', () => stage);

    const charge = await flow.step('charge', ({ idempotencyKey }) => this.#payments.charge(order, idempotencyKey), {
      compensate: (done) => this.#payments.refund(done.id),
      redelivery: { maxDeliveries: 5 },
    });
    await flow.step('reserve', () => this.#stock.reserve(order), { compensate: () => this.#stock.release(order.id) });

    stage = 'waiting for the warehouse';
    const packed = await flow.signal('packed', { payload: Packed, timeoutMs: hours(48) });
    if (packed === undefined) throw flow.failure('never packed'); // what was done is undone, in reverse order

    stage = `packed by ${packed.by}`;
    await flow.sleep('cool-off', days(14));
    await flow.publish(receipts, { orderId: order.id, chargeId: charge.id });
    return { orderId: order.id, chargeId: charge.id };
  }
}
