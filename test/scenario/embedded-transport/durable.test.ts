// The embedded broker on a durable store, over the ends of its processes: what comes again, what does not, and what happens
// when the disk has no room.
import { afterEach, describe, expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { minutes, seconds } from '../../../src/core/options.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { DurableWorld, NEVER, message, receive, text } from '../../support/durable/durable-world.js';

const worlds: DurableWorld[] = [];

function world(options: ConstructorParameters<typeof DurableWorld>[0] = {}): DurableWorld {
  const made = new DurableWorld(options);
  worlds.push(made);
  return made;
}

afterEach(async () => {
  for (const made of worlds.splice(0)) await made.end();
});

const facts = ({ connection, ...rest }: ReceivedMessage): unknown => ({
  ...rest,
  payload: rest.payload && [...rest.payload],
  properties: { ...rest.properties },
  isOverAConnection: connection > 0,
});

describe.each(['closed', 'killed'] as const)('after the process was %s', (how) => {
  it('a message comes with all that it had, and with its id', async () => {
    const here = world();
    const publisher = await here.transport.publisher('orders', { initialSubscription: 's', producerName: 'shop' });
    const key = new Uint8Array([1, 2]);
    const all = [
      message('plain'),
      message('', { payload: null }),
      message('', { key: '', properties: { __proto__: 'x', a: '' } }),
      message('bytes', { key, orderingKey: new Uint8Array([0, 255]), eventTimeMs: 0.5, deliverAtMs: 1 }),
    ];
    for (const one of all) await publisher.publish(one, publisher.nextSequenceId());
    await here.transport.broker.publishBatch('orders', [message('b1', { key: 'k' }), message('b2')]);
    const before = await here.subscribe();
    const expected = (await receive(before, 6)).map(facts);

    await here.restart(how);
    const received = await receive(await here.subscribe(), 6);

    expect(received.map(facts)).toEqual(expected);
    expect(new Set(expected.map((one) => JSON.stringify(one))).size).toBe(6);
  });

  it('what was acknowledged stays so: entries in any order, and single messages of a batch', async () => {
    const here = world();
    const subscription = await here.subscribe();
    await here.publish('a', 'b', 'c', 'd');
    await here.transport.broker.publishBatch(
      'orders',
      ['p', 'q', 'r'].map((one) => message(one)),
    );
    const received = await receive(subscription, 7);
    for (const one of ['c', 'q', 'a'])
      await subscription.acknowledge(received.filter((got) => text(got) === one).map(({ id }) => id));

    await here.restart(how);

    expect(await here.backlog()).toEqual(['b', 'd', 'p', 'r']);
  });

  it('a delayed message still comes at its time, and not before', async () => {
    const here = world();
    const publisher = await here.transport.publisher('orders', { initialSubscription: 's' });
    const deliverAtMs = here.clock.now() + minutes(5);
    await publisher.publish(message('later', { deliverAtMs }), publisher.nextSequenceId());

    await here.restart(how);
    const subscription = await here.subscribe();
    let received: ReceivedMessage | undefined;
    void subscription.receive(NEVER).then((got) => (received = got));
    await here.clock.advanceBy(minutes(5) - 1);
    expect(received).toBeUndefined();
    await here.clock.advanceBy(1);
    await settlePromises();

    expect(received && text(received)).toBe('later');
  });

  it('chunks that were stored before are joined with those that come after', async () => {
    const here = world();
    await here.subscribe();
    const chunk = { uuid: 'shop-7', count: 2, totalBytes: 6 };
    const first = here.transport.broker.producer({ topic: 'orders', producerName: 'shop' });
    await first.publish(message('abc'), 7, { ...chunk, index: 0 });

    await here.restart(how);
    const subscription = await here.subscribe();
    const second = here.transport.broker.producer({ topic: 'orders', producerName: 'shop' });
    await second.publish(message('def'), 7, { ...chunk, index: 1 });

    expect((await receive(subscription, 1)).map(text)).toEqual(['abcdef']);
  });

  it('no id and no producer name is given again, also when the clock was set back', async () => {
    const here = world();
    await here.subscribe();
    const [before] = await here.publish('a');
    const name = here.transport.broker.newProducerName();

    await here.restart(how);
    here.clock = new FakeClock(here.clock.now() - minutes(60));
    await here.transport.broker.open();
    const [after] = await here.publish('b');

    expect(after?.ledgerId).toBeGreaterThan(before?.ledgerId ?? 0);
    expect(here.transport.broker.newProducerName()).not.toBe(name);
  });

  it('a subscription that was made is there: it gets what is published before anybody connects', async () => {
    const here = world();
    await here.subscribe({ initialPosition: 'latest' });

    await here.restart(how);
    await here.publish('meanwhile');

    expect(await here.backlog()).toEqual(['meanwhile']);
  });

  it('a subscription starts where it was sought to', async () => {
    const here = world();
    const subscription = await here.subscribe({ type: 'exclusive' });
    const ids = await here.publish('a', 'b', 'c');
    await subscription.acknowledgeCumulative(ids[2]!);
    await subscription.seek(ids[1]!);

    await here.restart(how);

    expect(await here.backlog()).toEqual(['b', 'c']);
  });
});

describe('when the disk gives an error', () => {
  it('that call and each after it fails, also when the disk works again; what had its receipt is there in the next process', async () => {
    const here = world();
    const subscription = await here.subscribe();
    await here.publish('a', 'b');
    const ids = (await receive(subscription, 2)).map(({ id }) => id);
    await subscription.acknowledge([ids[0]!]);

    here.failsOnce = true;
    await expect(here.publish('c')).rejects.toMatchObject({ name: 'TransportError', code: 'STORE_FAILED' });
    await expect(here.publish('d')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await expect(subscription.acknowledge([ids[1]!])).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await expect(here.transport.newTransaction()).rejects.toMatchObject({ cause: { code: 'STORE_FAILED' } });

    await here.restart('killed');
    expect(await here.backlog()).toEqual(['b']);
    await here.publish('e');
    expect(await here.backlog()).toEqual(['b', 'e']);
  });
});

describe('when the disk is full', () => {
  it('a publish fails as one that may be repeated, nobody sees its message, and what came after it fails too', async () => {
    const here = world({ deduplication: true });
    const subscription = await here.subscribe();
    const publisher = await here.transport.publisher('orders', { producerName: 'shop' });
    const publishAll = (): Promise<unknown>[] =>
      ['a', 'b', 'c'].map((one, sequenceId) => publisher.publish(message(one), sequenceId));

    here.isFull = true;
    const failed = await Promise.allSettled(publishAll());
    expect(failed).toMatchObject(
      failed.map(() => ({
        status: 'rejected',
        reason: { name: 'TransportError', code: 'STORE_FULL', retriable: true },
      })),
    );
    here.isFull = false;
    const stored = await Promise.all(publishAll());
    await here.publish('d');

    expect(stored).not.toContainEqual(expect.objectContaining({ ledgerId: -1 }));
    expect((await receive(subscription, 4)).map(text)).toEqual(['a', 'b', 'c', 'd']);
    await here.restart();
    expect(await here.backlog()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('an acknowledgement that could not be stored is stored when it is made again', async () => {
    const here = world();
    const subscription = await here.subscribe();
    await here.publish('a', 'b');
    const ids = (await receive(subscription, 2)).map(({ id }) => id);

    here.isFull = true;
    await expect(subscription.acknowledge(ids)).rejects.toMatchObject({ code: 'STORE_FULL', retriable: true });
    await expect(subscription.acknowledge(ids)).rejects.toMatchObject({ code: 'STORE_FULL', retriable: true });
    await here.restart();
    here.isFull = false;
    expect(await here.backlog()).toEqual(['a', 'b']);

    const again = await here.subscribe({ consumerName: 'again' });
    const received = await receive(again, 2);
    here.isFull = true;
    await expect(again.acknowledge([received[0]!.id])).rejects.toMatchObject({ code: 'STORE_FULL' });
    here.isFull = false;
    await again.acknowledge([received[0]!.id]);
    await here.restart();
    expect(await here.backlog()).toEqual(['b']);
  });

  it('what gives no promise is stored with the next thing that can be', async () => {
    const here = world();
    await here.publish('a');
    here.isFull = true;
    here.transport.broker.createSubscription('orders', 's');
    await expect(here.transport.broker.written()).rejects.toMatchObject({ code: 'STORE_FULL' });
    here.isFull = false;
    await here.publish('b');

    await here.restart();

    expect(await here.backlog()).toEqual(['a', 'b']);
  });

  it('SQLite itself says so, what was confirmed is there, and there is room once others have left', async () => {
    const here = world({ maxLedgerEntries: 10 });
    const subscription = await here.subscribe();
    here.database?.pragma('max_page_count = 100');
    let confirmed = 0;
    let refusal: unknown;
    while (refusal === undefined) {
      await here.publish('x'.repeat(10_000)).then(
        () => (confirmed += 1),
        (error: unknown) => (refusal = error),
      );
    }
    expect(refusal).toMatchObject({ code: 'STORE_FULL', retriable: true });
    expect(confirmed).toBeGreaterThan(20);

    const received = await receive(subscription, confirmed);
    await subscription.acknowledge(received.map(({ id }) => id));
    await here.publish('again');
    await here.restart();
    expect(await here.backlog()).toEqual(['again']);
  });
});

describe('the file', () => {
  it('stays as large as what is not acknowledged, however much went through it', async () => {
    const here = world({ maxLedgerEntries: 50 });
    const subscription = await here.subscribe();
    const sizes: number[] = [];
    for (let round = 0; round < 120; round++) {
      await here.publish(...Array.from({ length: 60 }, (_, n) => `${round} ${n} ${'x'.repeat(2_000)}`));
      const received = await receive(subscription, 60);
      await subscription.acknowledge(received.map(({ id }) => id));
      sizes.push(here.bytes);
    }
    const [early, late] = [sizes.slice(0, 60), sizes.slice(60)].map((some) => Math.max(...some));
    expect(late).toBeLessThanOrEqual(1.2 * (early ?? 0));
    await here.restart('closed');
    expect(here.bytes).toBeLessThan(600_000);
  });

  it('gives back what a backlog took, once that is gone', async () => {
    const here = world({ maxLedgerEntries: 100 });
    const subscription = await here.subscribe();
    for (let round = 0; round < 20; round++)
      await here.publish(...Array.from({ length: 100 }, () => 'x'.repeat(10_000)));
    const received = await receive(subscription, 2_000);
    await here.restart('closed');
    const full = here.bytes;

    const again = await here.subscribe();
    await again.acknowledge((await receive(again, 2_000)).map(({ id }) => id));
    // Each ledger that goes gives back a part.
    for (let round = 0; round < 20; round++) {
      await here.publish(...Array.from({ length: 100 }, () => 'y'));
      await again.acknowledge((await receive(again, 100)).map(({ id }) => id));
    }
    await here.restart('closed');

    expect(received).toHaveLength(2_000);
    expect(full).toBeGreaterThan(20_000_000);
    expect(here.bytes).toBeLessThan(full / 2);
  });

  it('lets go of what has expired', async () => {
    const here = world({ messageTtlMs: seconds(10), maxLedgerEntries: 10 });
    await here.subscribe();
    await here.publish(...Array.from({ length: 100 }, (_, n) => String(n)));
    await here.clock.advanceBy(minutes(6));
    await here.transport.broker.written();

    await here.restart();
    await here.transport.broker.open();

    expect(here.transport.broker.stats('orders').entries).toBeLessThanOrEqual(10);
    expect(await here.backlog()).toEqual([]);
  });
});
