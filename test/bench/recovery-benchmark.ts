// How long a durable broker takes to be ready again where transactions left open acknowledgements behind: it reads
// and aborts them, from the start to the first message. The baseline is the same folder's topic without a transaction.
import { rmSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embedded } from '../../src/embedded.js';
import type { EmbeddedSubscription, EmbeddedTransport } from '../../src/embedded.js';
import { hours } from '../../src/index.js';
import type { MessageId } from '../../src/index.js';
import { sqliteStore } from '../../src/sqlite.js';
import type { Benchmark, Measurement } from './variant.js';

const ACKS = 100_000;
const PER_TRANSACTION = 1_000;
const TOPIC = 'persistent://public/default/orders';
const SPEC = { topics: [TOPIC], subscription: 'billing', type: 'shared', initialPosition: 'earliest' } as const;
const PAYLOAD = new TextEncoder().encode('x'.repeat(100));

const NEVER = new AbortController().signal;

const PLAIN = 'no transaction';

export const recoveryBenchmark: Benchmark = {
  name: 'recovery',
  processes: 1,
  rounds: 5,
  variants: [
    { name: PLAIN, warmUpRounds: 1, measure: () => measure(false) },
    { name: '100,000 open acknowledgements', warmUpRounds: 1, baseline: PLAIN, measure: () => measure(true) },
  ],
};

const folders = new Map<boolean, Promise<string>>();

async function measure(inTransactions: boolean): Promise<Measurement> {
  let left = folders.get(inTransactions);
  if (left === undefined) folders.set(inTransactions, (left = leftFolder(inTransactions)));
  const dir = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  await cp(await left, dir, { recursive: true });
  const startedMs = performance.now();
  const transport = durable(dir);
  const first = await firstMessage(transport);
  const tookMs = performance.now() - startedMs;
  // What was freed comes in any order with what nobody held.
  if (first === undefined || (!inTransactions && first !== 'last')) throw new Error(`the first message was ${first}`);
  await transport.close();
  await rm(dir, { recursive: true });
  return { 'ms until ready': tookMs };
}

/** What a broker leaves that ends with all messages but one acknowledged. */
async function leftFolder(inTransactions: boolean): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  const transport = durable(dir);
  const subscription = await transport.subscribe({ ...SPEC, consumerName: 'c', prefetch: ACKS });
  const publisher = await transport.publisher(TOPIC);
  const publish = (key: string) =>
    publisher.publish({ payload: PAYLOAD, key, properties: {} }, publisher.nextSequenceId());
  await Promise.all(Array.from({ length: ACKS }, (_, n) => publish(String(n))));
  for (let done = 0; done < ACKS; done += PER_TRANSACTION) {
    const ids: MessageId[] = [];
    while (ids.length < PER_TRANSACTION) ids.push((await next(subscription)).id);
    const transaction = inTransactions ? await transport.newTransaction({ timeoutMs: hours(24) }) : undefined;
    await subscription.acknowledge(ids, { transaction });
  }
  await publish('last');
  // As a kill leaves it, behind the last receipt: a transport that closes aborts what is open.
  const left = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  await cp(dir, left, { recursive: true });
  await transport.close();
  await rm(dir, { recursive: true });
  process.once('exit', () => rmSync(left, { recursive: true }));
  return left;
}

async function firstMessage(transport: EmbeddedTransport): Promise<string | undefined> {
  const subscription = await transport.subscribe({ ...SPEC, consumerName: 'c', prefetch: 10 });
  const { key } = await next(subscription);
  return key === undefined ? undefined : String(key);
}

async function next(subscription: EmbeddedSubscription) {
  const message = await subscription.receive(NEVER);
  if (message === undefined) throw new Error('the subscription was closed');
  return message;
}

function durable(dir: string): EmbeddedTransport {
  // All of them are held by one consumer.
  const options = { maxUnackedPerConsumer: 2 * ACKS, maxUnackedPerSubscription: 2 * ACKS };
  return embedded({ store: sqliteStore({ dir }), options });
}
