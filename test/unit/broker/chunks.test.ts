// Chunks as the broker sees them: entries of their own, which on Shared all go to one consumer.
import { describe, expect, it } from 'vitest';
import type { ProducerHandle } from '../../../src/broker/producer-handle.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

/** A producer that sends chunks one by one, as `m0` of `m0 m1 m2`. */
class Chunks {
  readonly #producer: ProducerHandle;
  readonly #sequenceIds = new Map<string, number>();

  constructor(test: TestBroker, producerName?: string) {
    this.#producer = test.broker.producer({ topic: TOPIC, producerName });
  }

  /** @param texts name and index, of messages in three chunks. */
  async send(...texts: readonly string[]): Promise<number[]> {
    const ids = texts.map((text) => {
      const [uuid = '', index = ''] = text;
      const sequenceId = this.#sequenceIds.get(uuid) ?? this.#sequenceIds.size;
      this.#sequenceIds.set(uuid, sequenceId);
      const chunk = { uuid, index: Number(index), count: 3, totalBytes: 6 };
      return this.#producer.publish(message(text), sequenceId, chunk);
    });
    await settlePromises();
    return (await Promise.all(ids)).map(({ entryId }) => entryId);
  }
}

async function two(options: ConstructorParameters<typeof TestBroker>[0] = {}, permits = 100) {
  const test = new TestBroker({ roundRobinChunk: 1, ...options });
  const a = await test.connect('shared', 'a', { permits });
  const b = await test.connect('shared', 'b', { permits: 100 });
  return { test, a, b, chunks: new Chunks(test) };
}

describe('Shared', () => {
  it('G-10: all chunks of a message go to the consumer that got the first one, whatever comes between them', async () => {
    const { a, b, chunks } = await two();
    await chunks.send('m0', 'n0', 'm1', 'n1', 'n2', 'm2');

    expect([a.take(), b.take()]).toEqual(['m0 m1 m2', 'n0 n1 n2']);
  });

  it('G-10: chunks of two producers that call their messages the same are told apart', async () => {
    const { test, a, b, chunks } = await two();
    await chunks.send('m0');
    await new Chunks(test).send('m0', 'm1', 'm2');
    await chunks.send('m1', 'm2');

    expect([a.take(), b.take()]).toEqual(['m0 m1 m2', 'm0 m1 m2']);
  });

  it('G-10: a chunk waits for its consumer while that has no permits, and nothing new is read meanwhile', async () => {
    const { test, a, b, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    await test.publish('next');
    expect([a.take(), b.take(), test.stats().replay]).toEqual(['m0', '', 1]);
    await a.flow(1);
    expect([a.take(), b.take()]).toEqual(['m1', '']);
    await a.flow(1);

    expect([a.take(), b.take(), test.stats().replay]).toEqual(['m2', 'next', 0]);
  });

  it('S-20: what anyone may get again goes before a later chunk that waits', async () => {
    const { test, a, b, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    await test.publish('next');
    await a.nack('m0');
    a.take();
    await a.flow(3);

    expect([a.take(), b.take()]).toEqual(['m0* m1 m2', 'next']);
  });

  it('S-24: what waits for a consumer that leaves goes to another one with what it held, in order', async () => {
    const { test, a, b, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    await test.publish('next');
    await a.close();

    expect(b.take()).toBe('m0 m1 m2 next');
  });

  it('a chunk that was acknowledged while it waited is not sent, and what is new is read', async () => {
    const { test, a, b, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    await test.publish('next');
    const id = a.id('m0');
    void b.handle.acknowledge([1, 2].map((entryId) => ({ ...id, entryId })));
    await settlePromises();

    expect([a.take(), b.take(), test.stats().replay]).toEqual(['m0', 'next', 0]);
  });

  it('what expires while it waits is gone (S-29)', async () => {
    const { test, a, b, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    await test.clock.advanceBy(2_000);
    test.broker.expireMessages('t', 's', 1_000);
    await test.publish('next');

    expect([a.take(), b.take(), test.stats().replay]).toEqual(['m0', 'next', 0]);
  });

  it('an unload forgets who got the first chunk', async () => {
    const { test, chunks } = await two({}, 1);
    await chunks.send('m0', 'm1', 'm2');
    test.broker.unload('t');
    await settlePromises();
    const next = await test.connect('shared', 'c');

    expect([next.take(), test.stats().replay]).toEqual(['m0 m1 m2', 0]);
  });

  it('a chunk whose first one is acknowledged goes to anyone and blocks nobody', async () => {
    const { test, a, b, chunks } = await two();
    await chunks.send('m0', 'm1', 'm2');
    await a.ack('m0');
    a.take();
    await a.nack('m2');
    await test.publish('1', '2');

    expect([a.take(), b.take()]).toEqual(['m2* 2', '1']);
  });
});

describe('other types', () => {
  it('Key_Shared: chunks have one key, or one sequence id, so one consumer gets them all (K-01)', async () => {
    const test = new TestBroker();
    const clients = [await test.connect('key-shared', 'a'), await test.connect('key-shared', 'b')];
    await new Chunks(test).send('m0', 'n0', 'o0', 'm1', 'n1', 'o1', 'm2', 'n2', 'o2');

    const taken = clients.map((client) => client.take());
    for (const name of ['m', 'n', 'o']) {
      const chunk = new RegExp(`${name}\\d`, 'g');
      expect(taken.map((texts) => texts.match(chunk)?.join(' ')).filter((texts) => texts !== undefined)).toEqual([
        `${name}0 ${name}1 ${name}2`,
      ]);
    }
  });

  it('Exclusive: chunks are sent as they lie there, each costs a permit and counts in the backlog', async () => {
    const test = new TestBroker();
    const client = await test.connect('exclusive', 'c', { permits: 5 });
    await new Chunks(test).send('m0', 'n0', 'm1', 'm2');

    expect(client.take()).toBe('m0 n0 m1 m2');
    expect([test.stats().consumers[0]?.permits, test.stats().backlog]).toEqual([1, 4]);
  });
});

describe('a broker that deduplicates', () => {
  it('looks at the last chunk only (S-44)', async () => {
    const test = new TestBroker({ deduplication: true });
    const client = await test.connect('exclusive');
    const first = new Chunks(test, 'p');

    expect(await first.send('m0', 'm1', 'm2')).toEqual([0, 1, 2]);
    expect(await first.send('m0', 'm1', 'm2')).toEqual([3, 4, -1]);
    expect(await first.send('n0', 'n1', 'n2')).toEqual([5, 6, 7]);
    expect(client.take()).toBe('m0 m1 m2 m0 m1 n0 n1 n2');
  });
});

describe('what is no chunk', () => {
  it.each([
    [{ uuid: '', index: 0, count: 2, totalBytes: 2 }, '"uuid"'],
    [{ uuid: 'm', index: 0, count: 1, totalBytes: 2 }, '"count" must be a whole number of 2 or more, got 1'],
    [{ uuid: 'm', index: 2, count: 2, totalBytes: 2 }, '"index" must be a whole number from 0 to "count" - 1, got 2'],
    [{ uuid: 'm', index: -1, count: 2, totalBytes: 2 }, '"index" must be'],
    [{ uuid: 'm', index: 0, count: 2, totalBytes: 1 }, '"totalBytes" must be a whole number of 2 or more, got 1'],
  ])('%j is refused', async (chunk, reason) => {
    const producer = new TestBroker().broker.producer({ topic: TOPIC });

    await expect(producer.publish(message('m0'), 0, chunk)).rejects.toThrow(reason);
  });

  it('is refused where entries have no place of their own', async () => {
    const producer = new TestBroker().broker.producer({ topic: 'non-persistent://public/default/t' });
    const chunk = { uuid: 'm', index: 0, count: 2, totalBytes: 4 };

    await expect(producer.publish(message('m0'), 0, chunk)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });
});
