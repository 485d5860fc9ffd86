// Where the pending acknowledgements of a subscription are kept (T-43), and a log that brings them back (T-13, T-16).
import { describe, expect, it } from 'vitest';
import { LoggedPendingAckStore } from '../../../../src/broker/transactions/logged-pending-ack-store.js';
import type { PendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import { memoryPendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import { DispatchingPendingAckStoreProvider } from '../../../../src/broker/transactions/pending-ack-providers.js';
import type { PendingWorld } from './pending-ack-kit.js';
import { A, B, pendingAcksOf, places, SEGMENT, TestSubscription, withheld } from './pending-ack-kit.js';
import { SegmentWorld } from './segment-world.js';

const TOPIC = 'persistent://public/default/orders';

function providerOver(world: SegmentWorld, logs: PendingAckLogs): DispatchingPendingAckStoreProvider {
  const report = (error: Error): never => {
    throw error;
  };
  return new DispatchingPendingAckStoreProvider({ records: world.records, logs, report });
}

describe('pending acknowledgements are kept', () => {
  it.each([
    [SEGMENT, true],
    [TOPIC, false],
    ['topic://public/default/orders', false],
    ['non-persistent://public/default/orders', false],
  ])('of %s in the metadata store: %s, and else in a log (T-43)', async (topic, isInMetadata) => {
    const world = await SegmentWorld.with(A);
    const logs = memoryPendingAckLogs();
    const { acks } = pendingAcksOf(new TestSubscription(topic), providerOver(world, logs));
    await acks.acknowledge(A, places(1));
    const inLog = await (await logs.open({ topic, subscription: 's' })).read();
    const [op, ...more] = await world.records.acksOf(topic, 's');
    expect(more).toEqual([]);
    // Of what is in a log, the operation says only that the subscription takes part.
    expect([op?.op.ledgerId, inLog.length]).toEqual(isInMetadata ? [7, 0] : [0, 1]);
  });
});

describe('a log', () => {
  const logs = (): { world: PendingWorld; next: () => PendingWorld; kept: () => Promise<unknown> } => {
    const all = memoryPendingAckLogs();
    let subscription = new TestSubscription(TOPIC, { batches: { 4: 3 } });
    const start = (): PendingWorld =>
      pendingAcksOf(subscription, { open: async (owner) => new LoggedPendingAckStore(await all.open(owner)) });
    return {
      world: start(),
      next: () => {
        subscription = subscription.restarted();
        return start();
      },
      kept: async () => (await all.open({ topic: TOPIC, subscription: 's' })).read(),
    };
  };

  it('brings back what is open, with the messages of batches, for whoever coordinates to end (T-16)', async () => {
    const { world, next } = logs();
    await world.acks.acknowledge(A, places(1, '4/0'));
    await world.acks.acknowledgeUpTo(B, places(0));
    await world.acks.close();

    const after = next();
    await after.acks.open();
    expect(withheld(after)).toEqual([0, 1]);
    expect([0, 1, 2].filter((index) => after.acks.unackedOf(4)?.has(index))).toEqual([1, 2]);
    expect([...after.acks.transactions].sort()).toEqual([A, B]);
    await after.acks.commit(A);
    await after.acks.abort(B);
    expect(after.subscription.take()).toEqual(['acknowledged 1', 'acknowledged 4/0']);
  });

  it('skips what was acknowledged without the transaction meanwhile (T-13, T-14)', async () => {
    const { world, next } = logs();
    await world.acks.acknowledge(A, places(1, 2));
    world.subscription.normalAck(1);
    await world.acks.close();
    const after = next();
    await after.acks.abort(A);
    expect(after.subscription.take()).toEqual(['redelivered 2']);
  });

  it('applies an end again whose mark is there: perhaps it was not applied before (T-16)', async () => {
    const { world, next, kept } = logs();
    await world.acks.acknowledge(A, places(1));
    world.subscription.storeFails = true;
    await expect(world.acks.commit(A)).rejects.toThrow('the disk is full');
    await world.acks.close();

    const after = next();
    await after.acks.open();
    expect(after.subscription.take()).toEqual(['acknowledged 1']);
    expect(await kept()).toEqual([]);
  });

  it('keeps nothing of a transaction whose end was applied', async () => {
    const { world, kept } = logs();
    await world.acks.acknowledge(A, places(1));
    await world.acks.acknowledge(B, places(2));
    await world.acks.commit(A);
    expect(await kept()).toMatchObject([{ kind: 'individual', transaction: B }]);
    await world.acks.abort(B);
    expect(await kept()).toEqual([]);
  });
});
