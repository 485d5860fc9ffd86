// The workflow of an order that tests go through: two steps with compensations, a signal with a time limit, a long sleep, a message.
import { days, hours } from 'pulsework';
import { defineWorkflow } from 'pulsework/workflow';
import { z } from 'zod';

const Order = z.object({ id: z.string(), amount: z.number() });
const Receipt = z.object({ orderId: z.string(), chargeId: z.string(), by: z.string() });
const Packed = z.object({ by: z.string() });

/** What the world outside has seen, in order. */
export interface Shop {
  readonly log: string[];
  charge(id: string): Promise<{ readonly id: string }>;
  refund(chargeId: string): Promise<void>;
  reserve(id: string): Promise<void>;
  release(id: string): Promise<void>;
}

export function shop(): Shop {
  const log: string[] = [];
  return {
    log,
    charge: async (id) => (log.push(`charge ${id}`), { id: `ch-${id}` }),
    refund: async (chargeId) => void log.push(`refund ${chargeId}`),
    reserve: async (id) => void log.push(`reserve ${id}`),
    release: async (id) => void log.push(`release ${id}`),
  };
}

export function orderWorkflow(outside: Shop) {
  return defineWorkflow({
    name: 'fulfil-order',
    version: 1,
    input: Order,
    result: Receipt,
    signals: { packed: Packed },
    async run(flow, order) {
      let stage = 'charging';
      flow.query('stage', () => stage);
      const charge = await flow.step('charge', () => outside.charge(order.id), {
        compensate: (done) => outside.refund(done.id),
        redelivery: { maxDeliveries: 3 },
      });
      await flow.step('reserve', () => outside.reserve(order.id), { compensate: () => outside.release(order.id) });
      stage = 'waiting to be packed';
      const packed = await flow.signal('packed', { payload: Packed, timeoutMs: hours(48) });
      if (packed === undefined) throw flow.failure('never packed');
      stage = 'cooling off';
      await flow.sleep('cool-off', days(14));
      await flow.publish('receipts', { orderId: order.id, chargeId: charge.id });
      return { orderId: order.id, chargeId: charge.id, by: packed.by };
    },
  });
}
