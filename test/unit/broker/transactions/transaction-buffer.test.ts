// The messages of transactions on a topic, by the records that a broker finds again: what is hidden and what is shown (T-07,
// T-46), in which order things are recorded (T-44, T-45), and what is left when all is over.
import { describe, expect, it } from 'vitest';
import type { MetadataStore } from '../../../../src/ports/metadata-store.js';
import { BrokerTransactions } from '../../../../src/broker/transactions/broker-transactions.js';
import { TxnMetadataStore } from '../../../../src/broker/transactions/txn-metadata-store.js';
import type { TransactionId } from '../../../../src/core/transaction-id.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { minutes } from '../../../../src/core/options.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { ProducerHandle } from '../../../../src/broker/producer-handle.js';
import type { TestClient } from '../broker-kit.js';
import { TOPIC, TestBroker, message } from '../broker-kit.js';
import { changed, untold } from './segment-world.js';

class World {
  readonly metadata: MetadataStore;
  readonly records: TxnMetadataStore;
  readonly broker: TestBroker;
  readonly transactions: BrokerTransactions;
  readonly failures: Error[] = [];
  readonly #producer: ProducerHandle;
  #sequenceId = 0;

  /** @param seen how the broker sees its store */
  constructor(seen: (metadata: MetadataStore) => MetadataStore = (same) => same, topic = TOPIC) {
    this.metadata = memoryMetadataStore();
    this.records = new TxnMetadataStore(this.metadata);
    const onFailed = (error: Error): void => void this.failures.push(error);
    this.broker = new TestBroker({ transactions: { store: seen(this.metadata), onFailed } });
    const { transactions } = this.broker.broker;
    if (transactions === undefined) throw new Error('the broker has no transactions');
    this.transactions = transactions;
    this.#producer = this.broker.broker.producer({ topic });
  }

  async begin(timeoutMs = minutes(10)): Promise<TransactionId> {
    return this.transactions.begin({ timeoutMs });
  }

  async publishIn(id: TransactionId, ...texts: readonly string[]): Promise<void> {
    for (const text of texts)
      await this.#producer.publish(message(text), this.#sequenceId++, undefined, transactionKey(id));
    await settlePromises();
  }

  async publish(...texts: readonly string[]): Promise<void> {
    for (const text of texts) await this.#producer.publish(message(text), this.#sequenceId++);
    await settlePromises();
  }

  async end(id: TransactionId, action: 'commit' | 'abort'): Promise<void> {
    await this.transactions.end(id, action);
    await settlePromises();
  }

  /** All paths in the store but numbers that were given. */
  async left(): Promise<readonly string[]> {
    const all = await this.metadata.scan({});
    return all.map(({ path }) => path).filter((path) => !path.startsWith('/txn/tc-seq/'));
  }
}

/** Of a client with room for all of it. */
function reader(world: World): Promise<TestClient> {
  return world.broker.connect('shared', 'c');
}

describe('a topic in transactions', () => {
  it('is read up to the first entry of the earliest open one, whichever ends first (T-46)', async () => {
    const world = new World();
    const client = await reader(world);
    const [one, two] = [await world.begin(), await world.begin()];
    await world.publish('0');
    await world.publishIn(one, '1a');
    await world.publishIn(two, '2a');
    await world.publishIn(one, '1b');
    await world.publish('9');
    expect(client.take()).toBe('0');
    await world.end(two, 'commit');
    expect(client.take()).toBe('');
    await world.end(one, 'abort');
    expect(client.take()).toBe('2a 9');
  });

  it('takes nothing in a transaction that has ended, or never was, and leaves no record of it (T-44)', async () => {
    const world = new World();
    const client = await reader(world);
    const committed = await world.begin();
    await world.end(committed, 'commit');
    const never = { mostBits: 0n, leastBits: 999n };
    for (const id of [committed, never])
      await expect(world.publishIn(id, 'x')).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    await world.publish('plain');
    expect(client.take()).toBe('plain');
    expect(await world.records.writesTo(TOPIC)).toEqual([]);
  });

  it('has the operation recorded before the first entry is there, and one for all of them (T-44)', async () => {
    let append = (): void => undefined;
    const appending = new Promise<void>((resolve) => (append = resolve));
    const world = new World((metadata) =>
      changed(metadata, {
        append: async (...given) => {
          await appending;
          return metadata.append(...given);
        },
      }),
    );
    const id = await world.begin();
    const publishing = world.publishIn(id, 'a', 'b');
    await settlePromises();
    expect(world.broker.broker.stats(TOPIC).entries).toBe(0);
    append();
    await publishing;
    expect(world.broker.broker.stats(TOPIC).entries).toBe(2);
    expect(await world.records.writesTo(TOPIC)).toHaveLength(1);
  });

  it('keeps operations, and with them the header, until the outcome is known without (T-45)', async () => {
    const world = new World();
    const [open, committed, aborted] = [await world.begin(), await world.begin(), await world.begin()];
    await world.publishIn(open, 'o');
    await world.publishIn(committed, 'c');
    await world.publishIn(aborted, 'x');
    await world.end(committed, 'commit');
    await world.end(aborted, 'abort');
    const ops = async () => (await world.records.writesTo(TOPIC)).map(({ transaction }) => transaction);
    expect(await ops()).toEqual([open, committed].map(transactionKey));
    expect(await world.records.abortedOn(TOPIC)).toMatchObject([{ transaction: transactionKey(aborted) }]);
    await world.end(open, 'commit');
    expect(await ops()).toEqual([]);
  });

  it('is told at the next look what it was not told, and at the collection what nobody looks for', async () => {
    const world = new World(untold);
    const client = await reader(world);
    const [one, two] = [await world.begin(), await world.begin()];
    await world.publishIn(one, 'a');
    await world.end(one, 'commit');
    expect(client.take()).toBe('');
    await world.broker.clock.advanceBy(1_000);
    await client.flow(1);
    expect(client.take()).toBe('a');
    await world.publishIn(two, 'b');
    await world.end(two, 'commit');
    await world.broker.clock.advanceBy(1_000);
    await client.flow(1);
    expect(client.take()).toBe('b');
  });

  it('after all have ended and what they published is gone, leaves nothing behind but where it was', async () => {
    const world = new World();
    const client = await reader(world);
    for (const action of ['commit', 'abort'] as const) {
      const id = await world.begin();
      await world.publishIn(id, action);
      await world.end(id, action);
    }
    await world.publish('last');
    await client.ack('commit', 'last');
    world.broker.broker.unload(TOPIC);
    await settlePromises();
    await world.broker.clock.advanceBy(minutes(30));
    const last = transactionKey(await world.begin(minutes(30)));
    await world.broker.clock.advanceBy(minutes(29));
    const watermark = expect.stringMatching(/^\/txn\/segment-state\/watermark\//) as string;
    expect(await world.left()).toEqual([`/txn/id/${last}`, watermark]);
    world.broker.broker.deleteTopic(TOPIC, { force: true });
    await settlePromises();
    expect(await world.left()).toEqual([`/txn/id/${last}`]);
    expect(world.failures).toEqual([]);
  });
});

describe('a topic that is loaded again', () => {
  it('knows what is open, what was aborted and what is committed, the headers gone (T-45, T-46)', async () => {
    const world = new World();
    const first = await reader(world);
    const [committed, aborted, open] = [await world.begin(), await world.begin(), await world.begin(minutes(120))];
    await world.publishIn(committed, 'c');
    await world.publishIn(aborted, 'x');
    await world.end(committed, 'commit');
    await world.end(aborted, 'abort');
    await world.publishIn(open, 'o');
    await world.publish('behind');
    await world.broker.clock.advanceBy(minutes(40));
    expect(await world.records.readHeader(transactionKey(committed))).toBeUndefined();
    expect(await world.records.readHeader(transactionKey(aborted))).toBeUndefined();
    await first.close();

    world.broker.broker.unload(TOPIC);
    const again = await reader(world);
    await settlePromises();
    expect(again.take()).toBe('c');
    await world.end(open, 'commit');
    expect(again.take()).toBe('o behind');
  });

  it('applies what ended while it was not loaded, however often the records could not be read before', async () => {
    let fails = false;
    const world = new World((metadata) =>
      changed(metadata, {
        get: async (path) => {
          if (fails) throw new Error('the disk is gone');
          return metadata.get(path);
        },
      }),
    );
    const client = await reader(world);
    const id = await world.begin();
    await world.publishIn(id, 'a');
    await client.close();
    fails = true;
    world.broker.broker.unload(TOPIC);
    const again = await reader(world);
    await world.broker.clock.advanceBy(3_000);
    expect(again.take()).toBe('');
    expect(world.failures.map(({ message: text }) => text)).toContain('the disk is gone');
    fails = false;
    await world.broker.clock.advanceBy(1_000);
    await world.end(id, 'commit');
    expect(again.take()).toBe('a');
  });

  it('lets a transaction go on that was open, with the records it has', async () => {
    const world = new World();
    const id = await world.begin();
    const client = await reader(world);
    await world.publishIn(id, 'a');
    world.broker.broker.restart();
    await world.publishIn(id, 'b');
    expect(await world.records.writesTo(TOPIC)).toHaveLength(1);
    await world.end(id, 'commit');
    expect(client.disconnects).toBe(1);
    const again = await reader(world);
    expect(again.take()).toBe('a b');
  });
});

describe('around a transaction that is open', () => {
  it('messages expire up to it and not further (S-29)', async () => {
    const world = new World();
    await reader(world);
    const id = await world.begin();
    await world.publish('old');
    await world.publishIn(id, 'hidden');
    await world.publish('behind');
    await world.broker.clock.advanceBy(10_000);
    world.broker.broker.expireMessages(TOPIC, 's', 1_000);
    expect(world.broker.stats().backlog).toBe(2);
    await world.end(id, 'commit');
    world.broker.broker.expireMessages(TOPIC, 's', 1_000);
    expect(world.broker.stats().backlog).toBe(0);
  });

  it('a topic can be terminated, and its end is told once what was aborted is gone (G-13)', async () => {
    const world = new World();
    const client = await reader(world);
    const id = await world.begin();
    await world.publish('a');
    await world.publishIn(id, 'never');
    world.broker.broker.terminate(TOPIC);
    await expect(world.publishIn(id, 'late')).rejects.toMatchObject({ code: 'TOPIC_TERMINATED' });
    await client.ack('a');
    expect(world.broker.stats().backlog).toBe(1);
    await world.end(id, 'abort');
    expect(world.broker.stats().backlog).toBe(0);
  });

  it('a seek goes where it says, and what is hidden stays so', async () => {
    const world = new World();
    const client = await reader(world);
    const id = await world.begin();
    await world.publish('a');
    await world.publishIn(id, 'hidden');
    await client.ack('a');
    client.handle.seek('earliest');
    await settlePromises();
    const again = await reader(world);
    expect(again.take()).toBe('a');
    await world.end(id, 'commit');
    expect(again.take()).toBe('hidden');
  });

  it('a deleted topic forgets it, and one of the same name begins anew', async () => {
    const world = new World();
    const id = await world.begin();
    await world.publishIn(id, 'gone');
    world.broker.broker.deleteTopic(TOPIC, { force: true });
    const producer = world.broker.broker.producer({ topic: TOPIC });
    const client = await reader(world);
    await producer.publish(message('new'), 0, undefined, transactionKey(id));
    await world.end(id, 'commit');
    expect(client.take()).toBe('new');
    expect(await world.records.writesTo(TOPIC)).toEqual([]);
  });
});

it('nothing can wait on a topic that keeps nothing', async () => {
  const world = new World(undefined, 'non-persistent://public/default/t');
  const id = await world.begin();
  await expect(world.publishIn(id, 'x')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
});

it('a broker without transactions says so', async () => {
  const broker = new TestBroker();
  const producer = broker.broker.producer({ topic: TOPIC });
  const publishing = producer.publish(message('x'), 0, undefined, '0_1');
  await expect(publishing).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
});

it('a batch is in its transaction as a whole', async () => {
  const world = new World();
  const client = await reader(world);
  const id = await world.begin();
  const producer = world.broker.broker.producer({ topic: TOPIC, producerName: 'of batches' });
  await producer.publishBatch([message('a'), message('b')], 0, transactionKey(id));
  expect(client.take()).toBe('');
  await world.end(id, 'commit');
  expect(client.take()).toBe('a b');
});

it('before the first transaction nothing is opened, watched or timed, and nothing waits longer', async () => {
  const calls: string[] = [];
  const spied = (metadata: MetadataStore): MetadataStore =>
    new Proxy(metadata, {
      get: (store, name): unknown => {
        calls.push(String(name));
        return Reflect.get(store, name, store);
      },
    });
  const world = new World(spied);
  calls.length = 0;
  const client = await reader(world);
  await world.publish('a', 'b');
  await client.ack('a');
  world.broker.broker.restart();
  expect(calls).toEqual([]);
});
