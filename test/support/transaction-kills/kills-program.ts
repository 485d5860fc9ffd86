// A service on a durable embedded broker, to be killed: it makes of each job a result and an entry in a journal and acknowledges the
// job, all in one transaction, of which it aborts some. What it was answered it tells on standard output, synchronously: what was told
// has left this process, however it ends.
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { PulseworkError } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import type { EmbeddedSubscription } from 'pulsework/embedded';
import { sqliteStore } from 'pulsework/sqlite';
import { scattered } from '../seeded.js';
import type { KillsSettings } from './kills-settings.js';
import { JOBS, JOURNAL, RESULTS, SWEEPS, WORKERS } from './kills-settings.js';

const STANDARD_OUTPUT = 1;
const TRANSACTION_MS = 2_000;
/** Nothing more is there to be read. */
const QUIET_MS = 300;
const GIVE_UP_MS = 30_000;

const settings = JSON.parse(process.argv[2] ?? '') as KillsSettings;
const next = scattered(settings.seed * 1_000 + settings.life);
const store = sqliteStore({ dir: settings.dir });
const transport = embedded({ store, transactions: SWEEPS, options: { maxLedgerEntries: 20 } });

function tell(line: string): void {
  writeSync(STANDARD_OUTPUT, `${line}\n`);
}

function subscribe(topic: string, subscription: string, isShared: boolean): Promise<EmbeddedSubscription> {
  return transport.subscribe({
    ...{ topics: [transport.broker.fullName(topic)], subscription, initialPosition: 'earliest', prefetch: 20 },
    type: isShared ? 'shared' : 'failover',
    consumerName: `life ${settings.life}`,
  });
}

/** What a reader sees that begins at the first message, a line each. */
async function tellAll(topic: string): Promise<void> {
  const reader = await subscribe(topic, `reader ${settings.life} ${next()}`, false);
  for (;;) {
    const message = await reader.receive(AbortSignal.timeout(QUIET_MS + 1_500)).catch(() => undefined);
    if (message === undefined) break;
    tell(`saw ${topic} ${text(message.payload)}`);
  }
  tell(`end ${topic}`);
  await reader.close();
}

function text(payload: Uint8Array | null): string {
  return new TextDecoder().decode(payload ?? undefined);
}

const encoded = (line: string) => ({ payload: new TextEncoder().encode(line), properties: {} });

async function publishJobs(): Promise<void> {
  const publisher = await transport.publisher(JOBS);
  for (let at = 0; at < settings.jobs; at++) {
    const job = `${settings.life}.${at}`;
    tell(`send ${job}`);
    await publisher.publish(encoded(job), publisher.nextSequenceId());
    tell(`sent ${job}`);
    if (next() < 0.3) await sleep(next() * 10);
  }
}

async function work(worker: number): Promise<void> {
  const jobs = await subscribe(JOBS, WORKERS, true);
  const [results, journal] = [await transport.publisher(RESULTS), await transport.publisher(JOURNAL)];
  for (let tried = 0; ; tried++) {
    const message = await jobs.receive(new AbortController().signal);
    if (message === undefined) return;
    const job = text(message.payload);
    // Which attempt it was, so that what was aborted is known.
    const line = `${job} by ${settings.life}/${worker}/${tried}`;
    try {
      const transaction = await transport.newTransaction({ timeoutMs: TRANSACTION_MS });
      tell(`try ${line}`);
      await Promise.all([
        results.publish(encoded(line), results.nextSequenceId(), { transaction }),
        journal.publish(encoded(line), journal.nextSequenceId(), { transaction }),
      ]);
      await jobs.acknowledge([message.id], { transaction });
      const isAborted = next() < 0.25;
      tell(`${isAborted ? 'abort' : 'commit'} ${line}`);
      await (isAborted ? transaction.abort() : transaction.commit());
      tell(`${isAborted ? 'aborted' : 'committed'} ${line}`);
    } catch (error) {
      tell(`failed ${line} ${error instanceof PulseworkError ? error.code : String(error)}`);
    }
  }
}

async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  while (!(await holds())) {
    if (Date.now() > giveUpAt) {
      tell(`late ${what}`);
      return;
    }
    await sleep(50);
  }
}

function backlog(): number {
  return transport.broker.stats(JOBS).subscriptions.get(WORKERS)?.backlog ?? 0;
}

/** What is recorded of transactions that have ended long ago. */
async function left(): Promise<readonly string[]> {
  const all = (await store.metadata.scan({})).map(({ path }) => path);
  return all.filter((path) => !/^\/txn\/(tc-seq|segment-state)\//.test(path));
}

tell('begins');
await transport.broker.open();
tell('open');
for (const topic of [RESULTS, JOURNAL]) transport.broker.createSubscription(topic, 'all of it');
transport.broker.createSubscription(JOBS, WORKERS);
await transport.broker.written();
if (settings.isLast) {
  for (const worker of [1, 2]) void work(worker);
  await until(() => backlog() === 0, `${backlog()} jobs are left`);
  // A transaction that has just begun makes the broker look after what others left.
  await until(async () => {
    await (await transport.newTransaction({ timeoutMs: TRANSACTION_MS })).abort();
    await sleep(SWEEPS.retentionMs + 2 * SWEEPS.collectionIntervalMs);
    return (await left()).length <= 4;
  }, 'records are left');
  await tellAll(RESULTS);
  await tellAll(JOURNAL);
  await transport.close();
  tell('closed');
} else {
  void tellAll(RESULTS);
  void publishJobs();
  for (const worker of [1, 2, 3]) void work(worker);
}
