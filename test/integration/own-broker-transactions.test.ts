// Transactions on a real broker that has them, started for this file: what readers see and when, here and in Java's client,
// what is acknowledged, what the coordinator answers, and the cases of the conformance suite that need transactions.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { TransactionCoordinators } from '../../src/transports/wire/transaction-coordinators.js';
import { ConnectionPool } from '../../src/transports/wire/connection-pool.js';
import { Lookup } from '../../src/transports/wire/lookup.js';
import { PendingBytes } from '../../src/transports/wire/pending-message.js';
import { resolveWireOptions } from '../../src/transports/wire/wire-options.js';
import { WireClient, wire } from '../../src/wire.js';
import type { WireConsumer, WireConsumerOptions } from '../../src/wire.js';
import { runExactlyOnce } from '../campaign/exactly-once-run.js';
import { Runtime, defineHandler, success, topic } from '../../src/index.js';
import { runProgram } from '../support/run-node.js';
import { textOf } from '../architecture/source-files.js';
import { eventually, receive, texts } from '../support/received.js';
import type { ConformanceCase } from '../../src/testing.js';
import { conformanceCases } from '../../src/testing.js';
import { runOnRealBroker, wireHarness } from '../conformance/real-broker-harness.js';
import { testWithBroker } from '../support/real-pulsar/integration-test.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';

// A broker starts within seconds; on an overloaded machine within minutes.
const PATIENT = { retry: 0, timeout: 300_000 };

const test = testWithBroker({ proxies: 0, transactions: true });

/** Long enough for what a broker shows by mistake; what it shows rightly comes within 400 ms. */
const QUIET_MS = 500;
const message = (text: string) => ({ payload: Buffer.from(text), properties: {} });
const nothing = async (consumer: WireConsumer) => expect(texts(await receive(consumer, 1, QUIET_MS))).toEqual([]);

async function connected(broker: RealPulsar) {
  const client = new WireClient({ serviceUrl: broker.serviceUrl });
  const read = (topic: string, options: Partial<WireConsumerOptions> = {}) =>
    client.subscribe({ topics: [topic], subscription: 's', ...options });
  return { client, read, [Symbol.asyncDispose]: () => client.close() };
}

/** What a client asks coordinators for, without a client that knows better. */
async function coordinatorsOf(broker: RealPulsar) {
  const options = resolveWireOptions({ serviceUrl: broker.serviceUrl });
  const pool = new ConnectionPool(options);
  let lastId = 0;
  const shared = { options, pool, lookup: new Lookup(pool, options), pendingBytes: new PendingBytes(1) };
  const coordinators = new TransactionCoordinators({ ...shared, nextId: () => ++lastId });
  const begin = (timeoutMs: number) => coordinators.begin(timeoutMs, () => undefined);
  return { coordinators, begin, [Symbol.asyncDispose]: () => pool.close() };
}

describe('transactions', PATIENT, () => {
  test('what is published is seen once it is committed, and never after an abort, here and by Java', async ({
    broker,
    java,
  }) => {
    await using world = await connected(broker);
    const { client, read } = world;
    await broker.admin.createPartitionedTopic('committed', 2);
    const here = await read('committed');
    const there = await java.subscribe(broker.serviceUrl, 'committed', { subscription: 'java' });
    const publisher = await client.publisher('committed');
    const publish = async (prefix: string, end: 'commit' | 'abort') => {
      const transaction = await client.newTransaction();
      const one = (n: number) =>
        publisher.publish({ ...message(`${prefix}${n}`), key: `k${n}` }, undefined, { transaction });
      await Promise.all(Array.from({ length: 8 }, (_, n) => one(n)));
      if (end === 'commit') await nothing(here);
      await transaction[end]();
      return transaction.state;
    };

    expect(await publish('aborted ', 'abort')).toBe('aborted');
    expect(await publish('committed ', 'commit')).toBe('committed');

    const expected = Array.from({ length: 8 }, (_, n) => `committed ${n}`);
    expect(texts(await receive(here, 8)).toSorted()).toEqual(expected);
    expect((await there.receive(8)).map(({ value }) => String(value)).toSorted()).toEqual(expected);
    await nothing(here);
  });

  test('transactional handlers make each result once, whoever is killed in the middle of its work', async ({
    broker,
    java,
  }) => {
    const options = { type: 'key-shared', ordering: 'key', concurrency: 16 } as const;
    const plan = { seed: 7, jobs: 150, kills: 3, brokerKills: 0, processes: 2, options };
    const totals = { jobs: 0, kills: 0, brokerKills: 0, told: 0 };

    expect(await runExactlyOnce(plan, broker, java, totals)).toEqual([]);
    expect(totals.kills).toBe(3);
  });

  test('the example writes what it says it writes', async ({ broker }) => {
    const env = { PULSAR_URL: broker.serviceUrl };
    const run = await runProgram('examples/08-transactions/main.ts', { env });

    expect(run).toEqual({
      stdout: textOf('examples/08-transactions/expected-output.txt'),
      stderr: `connecting to ${broker.serviceUrl}\n`,
      exit: 0,
    });
  });

  test('transactional handlers are refused at start by a broker that has no transactions', async ({ pulsar }) => {
    const source = topic('no-transactions');
    const handler = defineHandler({
      ...{ name: 'h', source, subscription: 's', transactional: true },
      handle: () => success(),
    });

    await expect(
      Runtime.start({ transport: wire({ serviceUrl: pulsar.serviceUrl }), handlers: [handler] }),
    ).rejects.toMatchObject({
      code: 'START_FAILED',
      message: expect.stringContaining('transactionCoordinatorEnabled=true'),
      cause: { code: 'TRANSACTIONS_UNAVAILABLE' },
    });
  });

  test("Java's transaction is seen here once it is committed, and its aborted one never", async ({ broker, java }) => {
    await using world = await connected(broker);
    const consumer = await world.read('of-java');
    await java.produceInTransaction(broker.serviceUrl, 'of-java', [{ value: 'aborted' }], false);
    await java.produceInTransaction(broker.serviceUrl, 'of-java', [{ value: 'a' }, { value: 'b' }], true);

    expect(texts(await receive(consumer, 2))).toEqual(['a', 'b']);
  });

  test.for(['shared', 'exclusive'] as const)(
    'on %s what is acknowledged comes again after an abort, and no more after a commit',
    async (type, { broker }) => {
      await using world = await connected(broker);
      const { client, read } = world;
      const topic = `acknowledged-${type}`;
      const consumer = await read(topic, { type });
      const publisher = await client.publisher(topic, { batching: { maxDelayMs: 20 } });
      const published = ['a', 'b', 'c'].map((text) => publisher.publish(message(text)));
      await Promise.all(published);

      const aborted = await client.newTransaction();
      const first = await receive(consumer, 3);
      await consumer.acknowledge([first[0]!.id], { transaction: aborted });
      await consumer.acknowledge([first[1]!.id], { transaction: aborted });
      await aborted.abort();
      const again = await receive(consumer, type === 'shared' ? 2 : 3);
      expect(texts(again)).toEqual(['a', 'b', 'c'].slice(0, again.length));

      const committed = await client.newTransaction();
      const all = type === 'shared' ? [...again, first[2]!] : again;
      await consumer.acknowledge(
        all.map(({ id }) => id),
        { transaction: committed },
      );
      await committed.commit();
      // Decided, and carried out a moment later: who comes before that gets what is still pending.
      const backlog = async () => (await broker.admin.stats(topic)).subscriptions['s']?.msgBacklog;
      expect(await eventually(backlog, (left) => left === 0)).toBe(0);
      await consumer.close();
      const next = await read(topic, { type });
      await nothing(next);
    },
  );

  test('an open transaction hides what is published after it, until it ends (T-07)', async ({ broker }) => {
    await using world = await connected(broker);
    const { client, read } = world;
    const consumer = await read('hidden');
    const publisher = await client.publisher('hidden');
    await publisher.publish(message('before'));
    const transaction = await client.newTransaction();
    await publisher.publish(message('in it'), undefined, { transaction });
    await publisher.publish(message('after'));

    expect(texts(await receive(consumer, 2, QUIET_MS))).toEqual(['before']);
    await transaction.abort();
    expect(texts(await receive(consumer, 1))).toEqual(['after']);
  });

  test('what is acknowledged without a transaction meanwhile stays acknowledged after an abort (T-14)', async ({
    broker,
  }) => {
    await using world = await connected(broker);
    const { client, read } = world;
    const consumer = await read('plainly', { type: 'shared' });
    const publisher = await client.publisher('plainly', { batching: false });
    await publisher.publish(message('in both'));
    await publisher.publish(message('in one'));
    const [both, one] = await receive(consumer, 2);
    const transaction = await client.newTransaction();
    await consumer.acknowledge([both!.id, one!.id], { transaction });
    await consumer.acknowledge([both!.id]);
    await transaction.abort();

    expect(texts(await receive(consumer, 2, QUIET_MS))).toEqual(['in one']);
  });

  test('a message in two transactions is a conflict, and a second commit or one that is late finds none', async ({
    broker,
  }) => {
    await using world = await connected(broker);
    await using raw = await coordinatorsOf(broker);
    // Milliseconds: were they seconds, the one would outlast this test by far.
    const [short, long] = [await raw.begin(1_500), await raw.begin(60_000)];
    const since = Date.now();
    const { client, read } = world;
    const consumer = await read('twice', { type: 'shared' });
    const publisher = await client.publisher('twice');
    await publisher.publish(message('a'));
    const [a] = await receive(consumer, 1);
    const [one, other] = [await client.newTransaction(), await client.newTransaction()];
    await consumer.acknowledge([a!.id], { transaction: one });

    const acknowledging = consumer.acknowledge([a!.id], { transaction: other });
    await expect(acknowledging).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    await expect(other.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    await one.commit();

    const ended = { code: 'TRANSACTION_ENDED' };
    await expect(raw.coordinators.commit(one.id)).rejects.toMatchObject(ended);
    await raw.coordinators.commit(long.id);
    await sleep(Math.max(0, since + 3_500 - Date.now()));
    await expect(raw.coordinators.commit(short.id)).rejects.toMatchObject(ended);
    await Promise.all([short, long].map((each) => each.close()));
  });
});

describe.concurrent('transaction cases', PATIENT, () => {
  for (const conformanceCase of conformanceCases.filter(({ needs = [] }) => needs.includes('transactions'))) {
    const { title, realTime = 'gate' } = conformanceCase;
    if (realTime !== 'gate') test(title, ({ skip }) => skip(`${realTime.only}: ${realTime.reason}`));
    else if (needsBatches(conformanceCase))
      test(title, ({ broker, java, skip }) =>
        runOnRealBroker(conformanceCase, wireHarness(asShared(broker), java), skip),
      );
    else test(title, ({ broker, skip }) => runOnRealBroker(conformanceCase, wireHarness(asShared(broker)), skip));
  }
});

function needsBatches({ needs = [] }: ConformanceCase): boolean {
  return needs.includes('producer-batches');
}

function asShared({ serviceUrl, adminUrl, proxies }: RealPulsar): SharedPulsar {
  return new SharedPulsar({ serviceUrl, adminUrl, proxies });
}
