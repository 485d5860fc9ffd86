// A shop that places orders in its database, and a handler that charges for them. What each writes and what it says to the world
// are committed together.
import { days, defineHandler, effects, fixedBackoff, success, topic } from 'pulsework';
import { postgresEffects, postgresOutbox } from 'pulsework/postgres';
import { z } from 'zod';
import { pool, pulseworkSchema } from './database.js';

export const orders = topic('shop-orders', {
  payload: z.object({ id: z.string(), customer: z.string(), cents: z.int() }),
});
export const receipts = topic('shop-receipts', { payload: z.object({ order: z.string(), cents: z.int() }) });

export const outbox = postgresOutbox({ pool, schema: pulseworkSchema });

/** As a request of a customer does: one transaction, for the table and for the message. */
export async function placeOrder(id: string, customer: string, cents: number, inStock: boolean): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('INSERT INTO placed VALUES ($1, $2, $3)', [id, customer, cents]);
    await outbox.add(client, orders.message({ id, customer, cents }, { key: customer }));
    // Found out too late: neither the order nor its message exists.
    if (!inStock) throw new Error('out of stock');
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    console.log(`${id} was not placed: ${(error as Error).message}`);
  } finally {
    client.release();
  }
}

const once = effects(orders, { store: postgresEffects({ pool, schema: pulseworkSchema }), ttlMs: days(30) });
let failures = 1;

export const billing = defineHandler({
  name: 'Billing.charge',
  source: orders,
  subscription: 'billing',
  effects: once,
  publishes: [receipts],
  redelivery: { backoff: fixedBackoff(100) },
  handle: async (order) => {
    const { id, cents, customer } = order.payload;
    const transaction = once.transaction(order);
    await transaction.query('INSERT INTO charge VALUES ($1, $2)', [id, cents]);
    await outbox.add(transaction, receipts.message({ order: id, cents }, { key: customer }));
    // After the write: without the transaction the customer would be charged twice.
    if (id === 'O-2' && failures-- > 0) throw new Error('the process had a bad moment');
    return success();
  },
});
