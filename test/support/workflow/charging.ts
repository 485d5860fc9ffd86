// A workflow with one step that a handler does: a charge, told of by its id.
import type { Delivery, Outcome } from 'pulsework';
import { defineHandler, fixedBackoff, minutes, seconds, topic } from 'pulsework';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow, workflowEvents } from 'pulsework/workflow';
import { z } from 'zod';

export const Charge = z.object({ orderId: z.string(), amount: z.number() });
export type Charge = z.infer<typeof Charge>;
export const charges = topic('charges', { payload: Charge });
export const Done = z.object({ id: z.string() });
export const AGAIN = { backoff: fixedBackoff(seconds(1)), maxDeliveries: 3 };

export function charger(handle: (delivery: Delivery<Charge>) => Outcome | Promise<Outcome>) {
  const publishes = [workflowEvents('order')];
  return defineHandler({ name: 'Bank.charge', source: charges, subscription: 'bank', publishes, handle });
}

export function workflow(run: (flow: Flow) => Promise<unknown>) {
  return defineWorkflow({ name: 'order', version: 1, input: z.object({ amount: z.number() }), run });
}

export const START = { id: 'A-1', input: { amount: 5 } };
export const INPUT = { orderId: 'A-1', amount: 5 };

export const Order = workflow(async (flow) => {
  const { id } = await flow.step(
    'charge',
    { topic: charges, input: INPUT, result: Done },
    { redelivery: AGAIN, timeoutMs: minutes(5) },
  );
  return `charged ${id}`;
});
