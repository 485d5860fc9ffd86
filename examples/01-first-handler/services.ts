// The service classes. A method gets a delivery and says how it ended; everything that follows from that (the
// acknowledgement, the next attempt, the dead letter) is the runtime's part.
import { exponentialBackoff, on, poison, success } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { books } from './books.js';
import { deadOrders, orders, receipts } from './orders.js';
import type { Order, Receipt } from './orders.js';
import { CardDeclined, PaymentGateway } from './payment-gateway.js';

// Short waits, so that the example ends soon; in a service the defaults (1 s to 10 min, 10 deliveries) are a better start.
const redelivery = { maxDeliveries: 4, backoff: exponentialBackoff({ minMs: 50, maxMs: 400 }) };

@Handler({ subscription: 'billing', redelivery })
export class Billing {
  readonly #gateway = new PaymentGateway();

  /** A stolen card stays stolen: dead letter at once. Any other error, such as BankUnavailable, is tried again. */
  @Subscribe(orders, { publishes: [receipts], onError: [on(CardDeclined, poison)] })
  async charge({ payload: order }: Delivery<Order>): Promise<Outcome> {
    const amountCents = order.items.reduce((sum, { quantity, unitPriceCents }) => sum + quantity * unitPriceCents, 0);
    const { chargeId } = await this.#gateway.charge(order, amountCents);
    const receipt = { orderId: order.id, chargeId, currency: order.currency, amountCents };
    return success(receipts.message(receipt, { key: order.id }));
  }
}

@Handler({ subscription: 'bookkeeping' })
export class Bookkeeping {
  @Subscribe(receipts)
  book({ payload: receipt }: Delivery<Receipt>): Outcome {
    books.receipts.set(receipt.orderId, receipt);
    return success();
  }
}

/** A dead letter topic is a topic: whoever looks after failed orders subscribes to it. */
@Handler({ subscription: 'dead-letter-desk' })
export class DeadLetterDesk {
  @Subscribe(deadOrders)
  keep({ properties }: Delivery): Outcome {
    const line = Number(properties['line']);
    books.deadOrders.set(line, {
      line,
      cause: properties['pulsework-cause'] ?? 'unknown',
      attempt: Number(properties['pulsework-attempt']),
      reason: properties['pulsework-reason'] ?? '',
    });
    return success();
  }
}
