// Handler classes made by an inversify container: an asynchronous dependency is awaited before the first delivery, and
// what was made is let go in the reverse order.
import 'reflect-metadata';
import { setTimeout as wait } from 'node:timers/promises';
import { Container } from 'inversify';
import { Runtime, consoleLogger } from 'pulsework';
import { inversifyResolver } from 'pulsework/inversify';
import { startFailed, topics, transport } from '../broker.js';
import { DATABASE, Invoices, Invoicing, orders } from './services.js';
import type { Database } from './services.js';

const ORDERS = [
  { id: 'A-1', customer: 'Małgorzata' },
  { id: 'A-2', customer: 'Jürgen' },
  { id: 'A-3', customer: 'さくら' },
];
const ROUND_TRIP_MS = 5;

/** Stands for a driver whose connection takes a moment to open. `onSaved` tells how many rows there are. */
async function connect(onSaved: (rows: number) => void): Promise<Database> {
  await wait(ROUND_TRIP_MS);
  console.log('Database: connected');
  let rows = 0;
  const save = async (): Promise<number> => {
    await wait(ROUND_TRIP_MS);
    rows += 1;
    onSaved(rows);
    return rows;
  };
  return { save };
}

let allSaved: () => void = () => undefined;
const saved = new Promise<void>((resolve) => (allSaved = resolve));

const container = new Container();
container
  .bind<Database>(DATABASE)
  .toDynamicValue(() =>
    connect((rows) => {
      if (rows === ORDERS.length) allSaved();
    }),
  )
  .inSingletonScope()
  .onDeactivation(() => console.log('Database: disconnected'));
container.bind(Invoices).toSelf().inSingletonScope();

const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  // The class is not bound: the resolver binds it for the life of this runtime, in a container of its own.
  handlers: [Invoicing],
  resolve: inversifyResolver(container),
  logger: consoleLogger({ level: 'warn' }),
}).catch(startFailed);
console.log('Runtime: started');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const publisher = runtime.publisher(orders);
for (const order of ORDERS) await publisher.publish(order);
await Promise.race([saved, runtime.closed]);

// Lets the last run finish, closes the subscriptions, then deactivates the handler class. The database is the
// container's, so it is let go by whoever made the container.
await runtime.drain();
console.log('Runtime: closed');
await container.unbindAllAsync();
