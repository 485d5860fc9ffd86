// Workflows as the compiler sees them. Checked by `tsc`, never run.
import type { Flow, WorkflowHandle, Workflows } from 'pulsework/workflow';
import { Workflow, defineWorkflow } from 'pulsework/workflow';
import { poison, retryAfter, topic } from 'pulsework';
import { z } from 'zod';

declare const flow: Flow;
declare const workflows: Workflows;

const Order = z.object({ id: z.string(), amount: z.coerce.number() });
const order = defineWorkflow({
  name: 'order',
  version: 1,
  input: Order,
  result: z.object({ charge: z.string() }),
  async run(inner, { id, amount }) {
    const charge = await inner.step('charge', () => (amount > 0 ? id : poison('no')), {
      compensate: (done) => void done.toUpperCase(),
    });
    return { charge };
  },
});

const handle: WorkflowHandle<{ charge: string }> = await workflows.start(order, {
  id: '1',
  input: { id: '1', amount: '5' },
});
const charge: string = (await handle.result()).charge;
// @ts-expect-error -- the input has no such type
await workflows.start(order, { id: '1', input: { id: 1, amount: 5 } });
// @ts-expect-error -- the input is missing
await workflows.start(order, { id: '1' });

defineWorkflow({
  name: 'wrong',
  version: 1,
  input: Order,
  result: z.object({ charge: z.string() }),
  // @ts-expect-error -- the method returns something else than the schema of "result" takes
  run: async () => ({ charge: 5 }),
});

@Workflow('class-order', { version: 1, input: Order, result: z.object({ charge: z.string() }) })
export class ClassOrder {
  async run(inner: Flow, input: z.infer<typeof Order>): Promise<{ charge: string }> {
    return { charge: await inner.step('charge', () => input.id) };
  }
}
const ofClass: WorkflowHandle<{ charge: string }> = await workflows.start(ClassOrder, {
  id: '1',
  input: { id: '1', amount: 5 },
});

// @ts-expect-error -- the method takes another input than the schema gives
@Workflow('wrong', { version: 1, input: Order })
export class WrongInput {
  async run(_: Flow, input: { readonly other: string }): Promise<unknown> {
    return input.other;
  }
}

const value: number = await flow.step('step', () => (charge === '' ? retryAfter(5) : 7));
const signalled: { by: string } = await flow.signal('packed', { payload: z.object({ by: z.string() }) });
// @ts-expect-error -- with a time limit it may be undefined
const limited: { by: string } = await flow.signal('packed', { payload: z.object({ by: z.string() }), timeoutMs: 5 });
const all: [number, string] = await flow.all([flow.step('a', () => 1), flow.step('b', async () => 'b')]);
const first = await flow.race({ n: flow.step('a', () => 1), nap: flow.sleep('nap', 5) });
if (first.winner === 'n') value.toFixed(first.value);
// @ts-expect-error -- a sleep has no value
if (first.winner === 'nap') value.toFixed(first.value);
const child: { charge: string } = await flow.child(order, { id: '1', amount: 5 });

const charges = topic('charges', { payload: Order });
const Charged = z.object({ id: z.string() });
const remote: { id: string } = await flow.step(
  'charge',
  { topic: charges, input: { id: '1', amount: '5' }, result: Charged },
  { compensate: { topic: 'refunds', input: (done) => done.id.toUpperCase() }, timeoutMs: 5 },
);
await flow.step(
  'charge',
  { topic: charges, input: { id: '1', amount: 5 }, result: Charged },
  {
    compensate: (done) => done.id.toUpperCase(),
  },
);
// @ts-expect-error -- another payload than the topic takes
await flow.step('charge', { topic: charges, input: { id: 1, amount: 5 } });
// @ts-expect-error -- without a schema nothing is known of the result
const unknown: string = await flow.step('charge', { topic: 'charges', input: 5 });
// @ts-expect-error -- the result has no such field
await flow.step('charge', { topic: 'c', input: 5, result: Charged }, { compensate: (done) => void done.amount });

export const used = { ofClass, signalled, limited, all, child, remote, unknown };
