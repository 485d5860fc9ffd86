// How long a failed message holds back its key on Key_Shared (PIP-493): what ends it, what it outlives, what drops it.
// Owners used here (K-05): with c1 and c2, key A belongs to c2; c3 takes it over when it joins.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryingHashes } from '../../../src/broker/retrying-hashes.js';
import { seconds } from '../../../src/core/options.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import type { TestClient } from './broker-kit.js';
import { TestBroker } from './broker-kit.js';

/** Both are held by c2, and 1@A failed. */
async function failing(): Promise<{ test: TestBroker; c1: TestClient; c2: TestClient }> {
  const test = new TestBroker();
  const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
  await test.publish('1@A', '2@A');
  await c2.fail(['1@A'], ['2@A']);
  c2.take();
  return { test, c1, c2 };
}

describe('K-23: slots with the ordered set of what failed in them', () => {
  it('behave like a list of positions and slots', () => {
    const kinds = ['add', 'add', 'release', 'releaseRange', 'clear'] as const;
    const step = fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(60), length: fc.nat(8) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const retrying = new RetryingHashes();
        const model = new Map<number, number>();
        const slotOf = (position: number): number => position % 7;
        for (const { kind, at, length } of steps) {
          if (kind === 'add') retrying.add(at, slotOf(at));
          if (kind === 'add') model.set(at, slotOf(at));
          if (kind === 'release') expect(retrying.release(at)).toBe(model.get(at));
          if (kind === 'release') model.delete(at);
          if (kind === 'releaseRange') {
            const passed = [...model.keys()].filter((position) => position >= at && position <= at + length);
            expect(retrying.releaseRange(at, at + length)).toEqual(new Set(passed.map(slotOf)));
            for (const position of passed) model.delete(position);
          }
          if (kind === 'clear' && length === 0) retrying.clear();
          if (kind === 'clear' && length === 0) model.clear();
          const slot = slotOf(length);
          const own = [...model.keys()].filter((position) => slotOf(position) === slot);
          const earliest = own.length === 0 ? undefined : Math.min(...own);
          const found = [retrying.earliest(slot), retrying.withholds(slot, at), retrying.positions, retrying.hashes];
          const withheld = earliest !== undefined && at > earliest;
          expect(found).toEqual([earliest, withheld, model.size, new Set(model.values()).size]);
        }
      }),
      { numRuns: 60, seed: 23 },
    );
  });

  it('nothing of it runs on a timer', async () => {
    const { test } = await failing();
    expect(test.clock.pendingTimers).toEqual([]);
  });
});

describe('K-28: only an acknowledgement ends it', () => {
  it('of the whole entry, by whoever it is', async () => {
    const { c1, c2 } = await failing();
    await c1.handle.acknowledge([c2.id('1@A')]);
    await settlePromises();
    expect(c2.take()).toBe('2@A');
  });

  it('of an entry that waits to be sent again too', async () => {
    const { test, c2 } = await failing();
    const c3 = await test.connect('key-shared', 'c3', { permits: 0 });
    await c2.nack('1@A');
    await c2.ack('1@A');
    await c3.flow(5);
    expect([c3.take(), test.stats().retryingHashes]).toEqual(['2@A', 0]);
  });

  it('of the last message of a batch, each counted once', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.batch('1@A', '2@A', '3@A');
    await test.publish('4@A');
    await client.ack('1@A');
    await client.fail(['2@A'], ['4@A']);
    client.take();
    await client.ack('1@A', '3@A', '3@A');
    expect(client.take()).toBe('');
    await client.nack('2@A');
    expect(client.take()).toBe('2@A*');
    await client.ack('2@A');
    expect(client.take()).toBe('4@A');
  });

  it('or a mark-delete position that passes it: its time is over', async () => {
    const { test, c2 } = await failing();
    await test.clock.advanceBy(seconds(60));
    await test.publish('3@A');
    expect(c2.take()).toBe('');
    test.broker.expireMessages('t', 's', seconds(30));
    await settlePromises();
    expect([c2.take(), test.stats()]).toMatchObject(['3@A', { retryingHashes: 0, retryingPositions: 0 }]);
  });

  it('not a redelivery request, for this entry or for all', async () => {
    const { test, c2 } = await failing();
    await c2.nack('1@A');
    c2.handle.redeliverAll();
    await settlePromises();
    expect([c2.take(), test.stats().retryingPositions]).toEqual(['1@A* 1@A**', 1]);
  });
});

describe('K-29: what it outlives', () => {
  it('its consumer: the failed message comes to the next owner at once, and the rest of the key waits for it', async () => {
    const { test, c1, c2 } = await failing();
    await c2.close();
    await test.publish('3@A');
    expect(c1.take()).toBe('1@A');
    await c1.ack('1@A');
    expect(c1.take()).toBe('2@A 3@A');
  });

  it('a consumer that leaves after the retry was requested and before it was sent', async () => {
    const { test, c2 } = await failing();
    const c3 = await test.connect('key-shared', 'c3', { permits: 0 });
    await c2.nack('1@A');
    await c3.close();
    expect([c2.take(), test.stats().retryingHashes]).toEqual(['1@A*', 1]);
    await c2.ack('1@A');
    expect(c2.take()).toBe('2@A');
  });

  it('a hash that moves and moves back, with disconnects and draining together', async () => {
    const { test, c1, c2 } = await failing();
    const c3 = await test.connect('key-shared', 'c3');
    expect([c3.take(), test.stats()]).toMatchObject(['', { drainingHashes: 1, retryingHashes: 1 }]);
    await c2.close();
    expect([c3.take(), test.stats()]).toMatchObject(['1@A', { drainingHashes: 0, retryingHashes: 1 }]);
    await c3.fail(['1@A']);
    await c3.close();
    await test.publish('3@A');
    expect(c1.take()).toBe('1@A');
    await c1.ack('1@A');
    expect([c1.take(), test.stats().retryingHashes]).toEqual(['2@A 3@A', 0]);
  });
});

describe('K-29: what drops it', () => {
  const dropped = { retryingHashes: 0, retryingPositions: 0 };

  it('the last consumer leaving', async () => {
    const { test, c1, c2 } = await failing();
    await c1.close();
    await c2.close();
    expect(test.stats()).toMatchObject(dropped);
    expect((await test.connect('key-shared', 'c2')).take()).toBe('1@A 2@A');
  });

  it('a seek', async () => {
    const { test, c2 } = await failing();
    c2.handle.seek('earliest');
    await settlePromises();
    expect(test.stats()).toMatchObject(dropped);
    expect((await test.connect('key-shared', 'c2')).take()).toBe('1@A 2@A');
  });

  it.each(['unload', 'restart'] as const)('an %s', async (call) => {
    const { test } = await failing();
    test.broker[call]('t');
    await settlePromises();
    expect(test.stats()).toMatchObject(dropped);
    expect((await test.connect('key-shared', 'c2')).take()).toBe('1@A 2@A');
  });
});
