// Pending acknowledgements in a metadata store: a process that starts finds everything again, in the order of T-41.
import { describe, expect, it } from 'vitest';
import { PulseworkError } from '../../../../src/core/errors.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import { A, B, C, places, withheld } from './pending-ack-kit.js';
import { changed, SegmentWorld, untold } from './segment-world.js';

const FAILED = new PulseworkError('STORE_FAILED', 'no answer');

describe('a process that starts', () => {
  it('has what is open pending again, with the messages of batches, and commits it (T-41, T-42)', async () => {
    const world = await SegmentWorld.with(A, B);
    const before = await world.subscribed({ batches: { 2: 3 } });
    await before.acks.acknowledge(A, places(1, '2/0'));
    await before.acks.acknowledgeUpTo(B, places(0));
    await before.acks.close();

    const after = await world.restarted(before);
    expect(withheld(after)).toEqual([0, 1]);
    expect([0, 1, 2].filter((index) => after.acks.unackedOf(2)?.has(index))).toEqual([1, 2]);
    await expect(after.acks.acknowledge(B, places(1))).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    await world.end(A, 'COMMITTED');
    await world.end(B, 'COMMITTED');
    await settlePromises();
    expect(after.subscription.take()).toEqual(['acknowledged 1', 'acknowledged 2/0', 'acknowledged up to 0']);
  });

  it('applies what ended meanwhile before it is ready, an abort without any consumer (T-41, T-42)', async () => {
    const world = await SegmentWorld.with(A, B, C);
    const before = await world.subscribed();
    await before.acks.acknowledge(A, places(1));
    await before.acks.acknowledge(B, places(2));
    await before.acks.acknowledge(C, places(3));
    await before.acks.close();
    await world.end(A, 'COMMITTED');
    await world.end(B, 'ABORTED');

    const after = await world.restarted(before, untold(world.metadata));
    expect(after.subscription.cursor.isAcked(1)).toBe(true);
    expect(withheld(after)).toEqual([3]);
    expect(await world.recorded()).toEqual(['1_3: 3']);
  });

  it('takes over what is open behind what committed: both may have acknowledged up to a message (T-41)', async () => {
    const world = await SegmentWorld.with(A, B);
    const before = await world.subscribed({}, untold(world.metadata));
    await before.acks.acknowledgeUpTo(B, places(2));
    await world.end(B, 'COMMITTED');
    before.subscription.storeFails = true;
    // In memory it is acknowledged, so that the next one may go on; on disk it is not.
    await before.acks.acknowledgeUpTo(A, places(4));
    await before.acks.close();

    const after = await world.restarted(before);
    expect(after.subscription.cursor.markDelete).toBe(2);
    await world.end(A, 'COMMITTED');
    await settlePromises();
    expect(after.subscription.cursor.markDelete).toBe(4);
  });

  it('does it in order: watch, scan, headers, ends, ready, and then what waits (T-41)', async () => {
    const world = await SegmentWorld.with(A, B);
    const before = await world.subscribed();
    await before.acks.acknowledge(A, places(1));
    await before.acks.close();
    await world.end(A, 'COMMITTED');
    const steps: string[] = [];
    const told = <T>(step: string, call: () => Promise<T>): Promise<T> => {
      if (steps.at(-1) !== step) steps.push(step);
      return call();
    };
    const { metadata } = world;
    const after = world.participant(
      before.subscription.restarted(),
      changed(metadata, {
        watch: (...args) => told('watch', () => metadata.watch(...args)),
        scanIndex: (...args) => told('scan', () => metadata.scanIndex(...args)),
        get: (...args) => told(`header, ${after.acks.state}`, () => metadata.get(...args)),
        delete: (...args) => told('delete', () => metadata.delete(...args)),
        append: (...args) => told('append', () => metadata.append(...args)),
      }),
    );
    after.subscription.storing = (store) => told('cursor', async () => store());
    await after.acks.acknowledge(B, places(2));
    const recovery = ['watch', 'scan', 'header, initializing', 'cursor', 'scan', 'delete'];
    expect(steps).toEqual([...recovery, 'header, ready', 'append', 'header, ready']);
  });

  it('hears of what ended while it read, though events before it is ready count for nothing (T-41)', async () => {
    const world = await SegmentWorld.with(A);
    const before = await world.subscribed();
    await before.acks.acknowledge(A, places(1));
    await before.acks.close();
    const { metadata } = world;
    let isEnded = false;
    const after = await world.restarted(
      before,
      changed(metadata, {
        get: async (path) => {
          const header = await metadata.get(path);
          if (!isEnded) {
            isEnded = true;
            await world.end(A, 'COMMITTED');
          }
          return header;
        },
      }),
    );
    await settlePromises();
    expect(after.subscription.take()).toEqual(['acknowledged 1']);
  });

  it.each(['watch', 'scanIndex', 'get'] as const)(
    'is not ready where %s fails, and watches no more (T-41)',
    async (call) => {
      const world = await SegmentWorld.with(A);
      const before = await world.subscribed();
      await before.acks.acknowledge(A, places(1));
      await before.acks.close();
      let watches = 0;
      const { metadata } = world;
      const failing = changed(metadata, {
        watch: async (...args) => {
          const watch = await metadata.watch(...args);
          watches += 1;
          let isOpen = true;
          return {
            close: () => {
              if (isOpen) watches -= 1;
              isOpen = false;
              watch.close();
            },
          };
        },
        [call]: () => Promise.reject(FAILED),
      });
      const { acks } = world.participant(before.subscription.restarted(), failing);
      await expect(acks.open()).rejects.toMatchObject({ code: 'BROKER_ERROR', cause: FAILED });
      expect(acks.state).toBe('error');
      expect(watches).toBe(0);
    },
  );

  it('and is closed while it reads applies nothing more', async () => {
    const world = await SegmentWorld.with(A);
    const before = await world.subscribed();
    await before.acks.acknowledge(A, places(1));
    await before.acks.close();
    await world.end(A, 'COMMITTED');
    const after = world.participant(before.subscription.restarted());
    const opening = expect(after.acks.open()).rejects.toThrow('PendingAckHandle have been closed!');
    await after.acks.close();
    await opening;
    expect(after.subscription.take()).toEqual([]);
    expect(await world.recorded()).toEqual(['1_1: 1']);
  });
});
