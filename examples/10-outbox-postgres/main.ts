// An outbox and effects in PostgreSQL: an order that was rolled back is never charged, a charge that failed half way is there
// once, and each charge has its receipt.
import { Runtime, consoleLogger, defineHandler, success } from 'pulsework';
import { startFailed, topics, transport } from '../broker.js';
import { dropTables, makeTables, pool } from './database.js';
import { billing, outbox, placeOrder, receipts } from './services.js';

await makeTables();
const received: string[] = [];
let allReceived: () => void = () => undefined;
const done = new Promise<void>((resolve) => (allReceived = resolve));

const mailbox = defineHandler({
  name: 'Mailbox.receipt',
  source: receipts,
  subscription: 'mailbox',
  handle: ({ payload }) => {
    received.push(`${payload.order}: ${payload.cents} cents`);
    if (received.length === 3) allReceived();
    return success();
  },
});

const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [billing, mailbox],
  outbox,
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

await placeOrder('O-1', 'Åsa', 1_200, true);
await placeOrder('O-2', '陳', 800, true);
await placeOrder('O-3', 'Bo', 5_000, false);
await placeOrder('O-4', 'Åsa', 300, true);
await Promise.race([done, runtime.closed]);
await runtime.drain();

const { rows } = await pool.query<{ order_id: string; times: string }>(
  'SELECT order_id, count(*) AS times FROM charge GROUP BY order_id ORDER BY order_id',
);
for (const { order_id: order, times } of rows) console.log(`${order} charged ${times} time`);
console.log(`receipts: ${received.toSorted().join(', ')}`);
await dropTables();
