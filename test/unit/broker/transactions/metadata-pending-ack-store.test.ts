// Pending acknowledgements in a metadata store, T-38 to T-42: the header of a transaction says how it ended, whoever tells or
// does not.
import { describe, expect, it } from 'vitest';
import { PulseworkError } from '../../../../src/core/errors.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import { A, B, C, places, withheld } from './pending-ack-kit.js';
import { changed, SegmentWorld, untold } from './segment-world.js';

const FAILED = new PulseworkError('STORE_FAILED', 'no answer');

describe('how a transaction ended', () => {
  it('is read from its header when an event comes, and applied (T-38)', async () => {
    const world = await SegmentWorld.with(A, B);
    const { acks, subscription } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    await acks.acknowledge(B, places(2));
    subscription.take();
    await world.end(A, 'COMMITTED');
    await world.end(B, 'ABORTED');
    await settlePromises();
    expect(subscription.take()).toEqual(['acknowledged 1', 'redelivered 2']);
  });

  it('is found for all that are open at any event, whichever it was for: events collapse (T-38)', async () => {
    const world = await SegmentWorld.with(A, B);
    const { acks, subscription } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    await acks.acknowledge(B, places(2));
    for (const each of [A, B])
      await world.records.finalizeHeader((await world.records.readHeader(each))!, 'COMMITTED', 0);
    await world.records.publishSubscriptionEvent(
      subscription.topic,
      's',
      { transaction: C, decision: 'ABORTED' },
      world.clock.now(),
    );
    await settlePromises();
    expect(subscription.take()).toEqual(['left 1', 'left 2', 'acknowledged 1', 'acknowledged 2']);
  });

  it('of one without a header is aborted (T-38)', async () => {
    const world = await SegmentWorld.with(A);
    const { acks, subscription, store } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    await world.records.deleteHeader((await world.records.readHeader(A))!);
    await store.reconcile();
    expect(subscription.take()).toEqual(['left 1', 'redelivered 1']);
  });

  it('is not taken from an event: what that says and the header does not is not so (T-38)', async () => {
    const world = await SegmentWorld.with(A);
    const { acks, subscription } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    const event = { transaction: A, decision: 'COMMITTED' } as const;
    await world.records.publishSubscriptionEvent(subscription.topic, 's', event, world.clock.now());
    await settlePromises();
    expect(subscription.take()).toEqual(['left 1']);
  });
});

it('an end that comes just when an acknowledgement was found to be in time is heard (T-38, T-42)', async () => {
  const world = await SegmentWorld.with(A);
  let reads = 0;
  const { metadata } = world;
  const get: typeof metadata.get = async (path) => {
    const header = await metadata.get(path);
    reads += 1;
    if (reads !== 2) return header;
    await world.end(A, 'ABORTED');
    await settlePromises();
    return header;
  };
  const subscribed = await world.subscribed({}, changed(metadata, { get }));
  await subscribed.acks.acknowledge(A, places(1));
  await settlePromises();
  expect(withheld(subscribed)).toEqual([]);
  expect(await world.recorded()).toEqual([]);
});

describe('where no event arrives', () => {
  it('using the subscription finds out, once a second at most', async () => {
    const world = await SegmentWorld.with(A, B);
    const { acks, subscription, clock } = await world.subscribed({}, untold(world.metadata));
    await acks.acknowledge(A, places(1));
    await acks.acknowledge(B, places(2));
    await world.end(A, 'COMMITTED');
    acks.used();
    await settlePromises();
    await world.end(B, 'COMMITTED');
    acks.used();
    await settlePromises();
    expect(subscription.take()).toEqual(['left 1', 'left 2', 'acknowledged 1']);
    await clock.advanceBy(1_000);
    acks.used();
    await settlePromises();
    expect(subscription.take()).toEqual(['acknowledged 2']);
  });

  it('a conflict with what has ended is none', async () => {
    const world = await SegmentWorld.with(A, B);
    const { acks, subscription } = await world.subscribed({}, untold(world.metadata));
    await acks.acknowledge(A, places(1));
    await acks.acknowledgeUpTo(A, places(0));
    await world.end(A, 'ABORTED');
    await acks.acknowledge(B, places(1));
    await acks.acknowledgeUpTo(B, places(0));
    expect(subscription.take()).toEqual(['left 1', 'redelivered 1', 'left 1']);
  });
});

describe('what is recorded', () => {
  it('is one operation per position, null or true for cumulative, with the messages of batches (T-39, T-42)', async () => {
    const world = await SegmentWorld.with(A, B);
    const { acks } = await world.subscribed({ batches: { 2: 3, 5: 3 } });
    await acks.acknowledge(A, places(1, '2/0', '2/2', 4));
    await acks.acknowledgeUpTo(B, places('5/1'));
    expect(await world.recorded()).toEqual(['1_1: 1', '1_1: 2/0,2 of 3', '1_1: 4', '1_2: …5/0,1 of 3']);
  });

  it('is not for a commit or an abort: these write nothing (T-39)', async () => {
    const world = await SegmentWorld.with(A);
    const { store } = await world.subscribed();
    const before = await world.metadata.scan({});
    await store.appendCommitMark();
    await store.appendAbortMark();
    expect(await world.metadata.scan({})).toEqual(before);
  });

  it('is nothing after it was closed (T-39)', async () => {
    const world = await SegmentWorld.with(A);
    const { store, acks } = await world.subscribed();
    await acks.close();
    const refused = { code: 'ALREADY_CLOSED', message: 'PendingAckStore is closed' };
    await expect(store.appendIndividual(A, [])).rejects.toMatchObject(refused);
    await expect(store.appendCommitMark()).rejects.toMatchObject(refused);
    await expect(store.applied(A)).rejects.toMatchObject(refused);
  });

  it.each([
    ['is not known', C, 'Transaction not found: (1,3)'],
    ['has ended', A, 'Transaction (1,1) is COMMITTED: nothing can be acknowledged in it'],
  ])('is nothing of a transaction that %s, and nothing is pending (T-42)', async (_, transaction, message) => {
    const world = await SegmentWorld.with(A);
    const subscribed = await world.subscribed();
    await world.end(A, 'COMMITTED');
    const refused = { code: 'TRANSACTION_ENDED', message };
    await expect(subscribed.acks.acknowledge(transaction, places(1))).rejects.toMatchObject(refused);
    await expect(subscribed.acks.acknowledgeUpTo(transaction, places(1))).rejects.toMatchObject(refused);
    expect(await world.recorded()).toEqual([]);
    expect(withheld(subscribed)).toEqual([]);
  });

  it('goes again where the transaction ended while it was written (T-42)', async () => {
    const world = await SegmentWorld.with(A);
    const append = world.metadata.append.bind(world.metadata);
    const metadata = changed(world.metadata, {
      append: async (...args) => {
        await world.end(A, 'COMMITTED');
        return append(...args);
      },
    });
    const subscribed = await world.subscribed({}, metadata);
    const refused = { code: 'TRANSACTION_ENDED' };
    await expect(subscribed.acks.acknowledge(A, places(1, 2))).rejects.toMatchObject(refused);
    expect(await world.recorded()).toEqual([]);
    expect(withheld(subscribed)).toEqual([]);
    expect(subscribed.subscription.take()).toEqual([]);
  });

  it('and fails is applied with the rest of its transaction, for part of it may be there (T-13)', async () => {
    const world = await SegmentWorld.with(A);
    let calls = 0;
    const append = world.metadata.append.bind(world.metadata);
    const metadata = changed(world.metadata, {
      append: (...args) => ((calls += 1) === 2 ? Promise.reject(FAILED) : append(...args)),
    });
    const subscribed = await world.subscribed({}, metadata);
    await expect(subscribed.acks.acknowledge(A, places(1, 2, 3))).rejects.toBe(FAILED);
    expect(withheld(subscribed)).toEqual([1, 2, 3]);
    await world.end(A, 'ABORTED');
    await settlePromises();
    expect(withheld(subscribed)).toEqual([]);
    expect(await world.recorded()).toEqual([]);
  });
});

describe('an end is applied', () => {
  it('first, and then its operations are deleted, of this subscription only (T-40)', async () => {
    const world = await SegmentWorld.with(A);
    const { acks, subscription } = await world.subscribed();
    const op = {
      kind: 'ACK',
      segment: subscription.topic,
      ledgerId: 7,
      entryId: 1,
      cumulative: null,
      batch: null,
    } as const;
    await world.records.appendOp(A, { ...op, subscription: 'other' });
    await acks.acknowledge(A, places(1));
    let acknowledgedFirst = false;
    subscription.storing = (store) => {
      store();
      return world.recorded().then((left) => void (acknowledgedFirst = left.length === 1));
    };
    await world.end(A, 'COMMITTED');
    await settlePromises();
    expect(acknowledgedFirst).toBe(true);
    expect(await world.recorded()).toEqual([]);
    expect((await world.records.opsOf(A)).map(({ op: { kind } }) => kind)).toEqual(['ACK']);
  });

  it('again at the next event where it failed, and its operations stay until then (T-40)', async () => {
    const world = await SegmentWorld.with(A);
    const { acks, subscription, reported } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    subscription.storeFails = true;
    await world.end(A, 'COMMITTED');
    await settlePromises();
    expect(reported.map(({ message }) => message)).toEqual(['the disk is full']);
    expect(await world.recorded()).toEqual(['1_1: 1']);
    subscription.storeFails = false;
    await world.end(A, 'COMMITTED');
    await settlePromises();
    expect(await world.recorded()).toEqual([]);
    expect(subscription.restarted().cursor.isAcked(1)).toBe(true);
  });

  it('and operations that could not be deleted are deleted at the next event: nobody else would (T-40)', async () => {
    const world = await SegmentWorld.with(A);
    let fails = true;
    const remove = world.metadata.delete.bind(world.metadata);
    const metadata = changed(world.metadata, {
      delete: (...args) => (fails ? Promise.reject(FAILED) : remove(...args)),
    });
    const { acks, subscription, reported } = await world.subscribed({}, metadata);
    await acks.acknowledge(A, places(1));
    await world.end(A, 'COMMITTED');
    await settlePromises();
    fails = false;
    await world.end(A, 'COMMITTED');
    await settlePromises();
    expect(reported).toEqual([FAILED]);
    expect(await world.recorded()).toEqual([]);
    expect(subscription.take()).toEqual(['left 1', 'acknowledged 1']);
  });

  it('once, however many events come at once (T-40)', async () => {
    const world = await SegmentWorld.with(A);
    const { acks, subscription, store } = await world.subscribed();
    await acks.acknowledge(A, places(1));
    await Promise.all([world.end(A, 'COMMITTED'), store.reconcile(), store.reconcile(), store.reconcile()]);
    await settlePromises();
    expect(subscription.take()).toEqual(['left 1', 'acknowledged 1']);
  });
});
