// The topics of this example and the shapes of their payloads: shared by those who publish and those who handle.
import { bytesCodec, deadLetterTopicName, textCodec, topic } from 'pulsework';
import { z } from 'zod';

const Order = z.object({
  id: z.string().min(1),
  placedAt: z.iso.datetime(),
  customer: z.object({ name: z.string().min(1), city: z.string() }),
  currency: z.enum(['EUR', 'GBP', 'USD']),
  items: z
    .array(
      z.object({
        sku: z.string(),
        title: z.string(),
        quantity: z.int().positive(),
        unitPriceCents: z.int().nonnegative(),
      }),
    )
    .min(1),
  card: z.string(),
});
export type Order = z.infer<typeof Order>;

const Receipt = z.object({
  orderId: z.string(),
  chargeId: z.string(),
  currency: z.string(),
  amountCents: z.int(),
});
export type Receipt = z.infer<typeof Receipt>;

export const orders = topic('orders', { payload: Order });
export const receipts = topic('receipts', { payload: Receipt });

/** The same topic for the importer: lines go out as they stand, and what is wrong with them is found where they arrive. */
export const orderLines = topic(orders.name, { codec: textCodec });

/** Where the subscription `billing` puts orders it cannot handle. Bytes: a dead letter need not be readable. */
export const deadOrders = topic(deadLetterTopicName(orders.name, 'billing'), { codec: bytesCodec });
