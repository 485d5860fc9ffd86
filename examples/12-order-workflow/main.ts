// Orders as workflows, in a shop whose bank is busy once and whose process is replaced in the middle. The waits are those of
// services.ts: the order that is packed sleeps for two weeks when this program ends, and costs a row.
import 'reflect-metadata';
import { Runtime, consoleLogger } from 'pulsework';
import { inversifyResolver } from 'pulsework/inversify';
import { Workflows, memoryWorkflowStore } from 'pulsework/workflow';
import { Container } from 'inversify';
import { startFailed, topics, transport } from '../broker.js';
import { FulfilOrder, Payments, Stock } from './services.js';
import type { Order } from './services.js';

const ORDERS: readonly Order[] = [
  { id: 'A-1', item: 'lamp', amount: 40 },
  { id: 'A-2', item: 'sofa', amount: 900 },
];

const log: string[] = [];
let asked = 0;
const container = new Container();
container.bind(Payments).toConstantValue({
  async charge({ id, amount }) {
    asked += 1;
    if (asked === 1) throw new Error('the bank is busy');
    log.push(`${id}: charged ${amount}`);
    return { id: `ch-${id}` };
  },
  refund: async (chargeId) => void log.push(`${chargeId.slice(3)}: refunded`),
});
container.bind(Stock).toConstantValue({
  reserve: async ({ id, item }) => void log.push(`${id}: reserved a ${item}`),
  release: async (id) => void log.push(`${id}: released`),
});

// A store in memory is for tests and for trying out: it is gone with the process.
const store = memoryWorkflowStore();
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const resolve = inversifyResolver(container);
const workflows = await Workflows.start({ runtime, store, definitions: [FulfilOrder], resolve });

for (const order of ORDERS) await workflows.start(FulfilOrder, { id: order.id, input: order });
// The same order once more is the same workflow.
await workflows.start(FulfilOrder, { id: 'A-1', input: ORDERS[0]! });

async function stageOf(id: string): Promise<string> {
  const record = await workflows.describe(FulfilOrder, id);
  return record === undefined ? 'not begun' : String(await workflows.query(FulfilOrder, id, 'stage'));
}

/** Resolves once the workflow says that it has come there. */
async function until(id: string, stage: string): Promise<void> {
  while ((await stageOf(id)) !== stage) await new Promise((again) => setTimeout(again, 20));
}

for (const { id } of ORDERS) await until(id, 'waiting for the warehouse');
await workflows.signal(FulfilOrder, 'A-1', 'packed', { by: 'dock-3' });
await until('A-1', 'packed by dock-3');
await workflows.cancel(FulfilOrder, 'A-2');
const cancelled = await workflows
  .handle(FulfilOrder, 'A-2')
  .result()
  .then(
    () => 'a receipt',
    (error: unknown) => (error as { readonly code: string }).code,
  );

for (const { id } of ORDERS) for (const line of log.filter((each) => each.startsWith(id))) console.log(line);
console.log(`A-1 is ${await stageOf('A-1')}`);
const waits = (await workflows.describe(FulfilOrder, 'A-1'))?.waits ?? [];
for (const { command, name } of waits) console.log(`A-1 waits for ${command} "${name}"`);
console.log(`A-2 ended with ${cancelled}`);
const { journal } = await workflows.history(FulfilOrder, 'A-1');
const failed = journal.filter(({ kind }) => kind === 'attempt-failed').length;
const { journal: other } = await workflows.history(FulfilOrder, 'A-2');
console.log(`attempts that failed: ${failed + other.filter(({ kind }) => kind === 'attempt-failed').length}`);
await runtime.drain();
