// The durable embedded broker: publish and acknowledge, each awaited, with 1 and with 64 in flight. The baseline is what one
// would write by hand on the same driver: two rows per message, in transactions of 64 rows, or of one message.
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embedded } from '../../src/embedded.js';
import { sqliteStore } from '../../src/sqlite.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { PAYLOAD, TOPIC_NAME, bareSubscription } from './workload.js';

const MESSAGES_OF: Readonly<Record<number, number>> = { 1: 2_000, 64: 20_000 };
const ROWS_AT_ONCE = 64;

export const durableBenchmark: Benchmark = {
  name: 'durable',
  processes: 2,
  rounds: 5,
  variants: [1, 64].flatMap((inFlight) => variantsAt(inFlight)),
};

function variantsAt(inFlight: number): Variant[] {
  const rows = inFlight === 1 ? 1 : ROWS_AT_ONCE;
  const bare = `SQLite loop, transactions of ${rows === 1 ? '1 row' : `${rows} rows`}`;
  return [
    { name: bare, warmUpRounds: 1, measure: () => inFolder((dir) => measureRows(dir, rows, messagesOf(inFlight))) },
    {
      name: `publish and acknowledge, ${inFlight} in flight`,
      warmUpRounds: 1,
      baseline: bare,
      measure: () => inFolder((dir) => measureBroker(dir, inFlight, messagesOf(inFlight))),
    },
  ];
}

function messagesOf(inFlight: number): number {
  return MESSAGES_OF[inFlight] ?? 0;
}

/** As many receipts are awaited at a time; the subscription acknowledges each message as it comes. */
async function measureBroker(dir: string, inFlight: number, messages: number): Promise<Measurement> {
  const transport = embedded({ store: sqliteStore({ dir }) });
  const subscription = await transport.subscribe(bareSubscription(1_000));
  const publisher = await transport.publisher(TOPIC_NAME);
  const { signal } = new AbortController();
  let next = 0;
  const waiting: (() => void)[] = [];
  /** A message is done when its acknowledgement has its receipt: then its lane goes on. */
  const lane = async (): Promise<void> => {
    while (next < messages) {
      next += 1;
      const done = new Promise<void>((resolve) => waiting.push(resolve));
      await publisher.publish({ payload: PAYLOAD, properties: {} }, publisher.nextSequenceId());
      await done;
    }
  };
  const acknowledgeAll = async (): Promise<void> => {
    for (let n = 0; n < messages; n++) {
      const message = await subscription.receive(signal);
      if (message === undefined) throw new Error('the subscription closed');
      void subscription.acknowledge([message.id]).then(() => waiting.shift()?.());
    }
  };
  const stopwatch = new Stopwatch();
  await Promise.all([acknowledgeAll(), ...Array.from({ length: inFlight }, lane)]);
  const measurement = stopwatch.perMessage(messages);
  if (transport.broker.stats(TOPIC_NAME).subscriptions.get(bareSubscription(1).subscription)?.backlog !== 0)
    throw new Error('something is left');
  await transport.close();
  return measurement;
}

interface Database {
  pragma(source: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): { run(parameters: readonly unknown[]): unknown };
  close(): unknown;
}

async function measureRows(dir: string, rowsAtOnce: number, messages: number): Promise<Measurement> {
  const Driver = createRequire(import.meta.url)('libsql') as new (path: string) => Database;
  const database = new Driver(`${dir}.db`);
  database.pragma('locking_mode = EXCLUSIVE');
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec(
    'CREATE TABLE message (id INTEGER PRIMARY KEY, payload BLOB); CREATE TABLE acked (id INTEGER PRIMARY KEY)',
  );
  const published = database.prepare('INSERT INTO message VALUES (?, ?)');
  const acknowledged = database.prepare('INSERT INTO acked VALUES (?)');
  const stopwatch = new Stopwatch();
  for (let row = 0; row < 2 * messages; row += rowsAtOnce) {
    database.exec('BEGIN IMMEDIATE');
    for (let each = row; each < Math.min(row + rowsAtOnce, 2 * messages); each++) {
      const id = Math.floor(each / 2);
      if (each % 2 === 0) published.run([id, PAYLOAD]);
      else acknowledged.run([id]);
    }
    database.exec('COMMIT');
  }
  const measurement = stopwatch.perMessage(messages);
  database.close();
  return measurement;
}

async function inFolder(measure: (dir: string) => Promise<Measurement>): Promise<Measurement> {
  const folder = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  try {
    return await measure(join(folder, 'broker'));
  } finally {
    await rm(folder, { recursive: true });
  }
}
