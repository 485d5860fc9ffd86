// A small service: parcels are booked with a carrier, and customers told. Nothing here knows how it is tested.
import { idempotent, memoryIdempotencyStore, days, on, poison, retryAfter, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { z } from 'zod';

const Order = z.object({ id: z.string(), address: z.string() });
const Parcel = z.object({ orderId: z.string(), trackingNumber: z.string() });
export type Order = z.infer<typeof Order>;
type Parcel = z.infer<typeof Parcel>;

export const orders = topic('orders', { payload: Order });
export const parcels = topic('parcels', { payload: Parcel });

export class AddressUnknown extends Error {}

export class CarrierBusy extends Error {
  constructor(readonly freeAfterMs: number) {
    super('the carrier has no room');
  }
}

export interface Carrier {
  /** The tracking number. @throws AddressUnknown, CarrierBusy */
  book(order: Order): Promise<string>;
}

export interface Mailbox {
  tell(text: string): Promise<void>;
}

@Handler({ subscription: 'shipping', redelivery: { maxDeliveries: 4 } })
export class Shipping {
  constructor(private readonly carrier: Carrier) {}

  @Subscribe(orders, {
    publishes: [parcels],
    onError: [on(AddressUnknown, poison), on(CarrierBusy, (error) => retryAfter(error.freeAfterMs, error))],
  })
  async ship({ payload: order }: Delivery<Order>): Promise<Outcome> {
    const trackingNumber = await this.carrier.book(order);
    return success(parcels.message({ orderId: order.id, trackingNumber }));
  }
}

/** A customer is told once, however often the message comes. */
const once = idempotent(parcels, {
  key: ({ payload }) => payload.orderId,
  store: memoryIdempotencyStore(),
  ttlMs: days(1),
});

@Handler({ subscription: 'notices' })
export class Notices {
  constructor(private readonly mailbox: Mailbox) {}

  @Subscribe(parcels, { idempotent: once })
  async tell({ payload: { orderId, trackingNumber } }: Delivery<Parcel>): Promise<Outcome> {
    await this.mailbox.tell(`order ${orderId} is on its way: ${trackingNumber}`);
    return success();
  }
}
