// Connections cut at random moments of random programs: every message is settled, keys stay in order, attempts are true.
import { describe, expect, it } from 'vitest';
import { defer, defineHandler, poison, retry, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { CutTransport } from '../../support/cut-transport.js';
import { seeded } from '../../support/seeded.js';

describe('a connection cut at random', () => {
  it.each(
    (
      [
        ['shared', 'none', false],
        ['shared', 'none', true],
        ['key-shared', 'key', false],
        ['failover', 'partition', false],
        ['exclusive', 'none', true],
      ] as const
    ).flatMap(([type, ordering, batches]) => [1, 2, 3, 4, 5, 6].map((seed) => ({ type, ordering, batches, seed }))),
  )(
    'loses nothing: $type, ordering $ordering, batches $batches, seed $seed',
    async ({ type, ordering, batches, seed }) => {
      const world = new World();
      const random = seeded(seed * 7919);
      const cut = new CutTransport(embedded({ broker: world.broker }));
      const failures = new Map<unknown, number>();
      const finished = new Set<unknown>();
      const problems: string[] = [];
      const running = new Map<string, number>();
      await world.start({
        transport: cut.transport,
        handlers: [
          defineHandler({
            name: 'h',
            source: topic('orders'),
            subscription: 's',
            type: type,
            ordering,
            concurrency: 4,
            redelivery: { maxDeliveries: 6, backoff: () => 500 },
            // oxlint-disable-next-line complexity -- one random program, checked as it runs
            handle: async (d) => {
              const id = Number(d.payload);
              const lane = ordering === 'partition' ? 'p' : (d.key ?? '');
              const expected = (failures.get(id) ?? 0) + 1;
              if (d.attempt !== expected) problems.push(`${id}: attempt ${d.attempt}, expected ${expected}`);
              if (ordering !== 'none') {
                if ((running.get(lane) ?? 0) > 0) problems.push(`${id}: two at once in lane ${lane}`);
                for (
                  let earlier = ordering === 'key' ? id - 5 : id - 1;
                  earlier >= 0;
                  earlier -= ordering === 'key' ? 5 : 1
                )
                  if (!finished.has(earlier)) problems.push(`${id} ran before ${earlier} was done`);
              }
              running.set(lane, (running.get(lane) ?? 0) + 1);
              await new Promise<void>((resolve) => world.clock.setTimer(random() * 400, resolve));
              running.set(lane, (running.get(lane) ?? 0) - 1);
              const dice = random();
              if (dice < 0.2) {
                failures.set(id, expected);
                if (expected >= 6) finished.add(id);
                return retry();
              }
              if (dice < 0.3) return defer(random() * 1_000);
              finished.add(id);
              return dice < 0.35 ? poison('x') : success();
            },
          }),
        ],
      });
      if (batches)
        for (let i = 0; i < 60; i += 6) await world.publishBatch('orders', [i, i + 1, i + 2, i + 3, i + 4, i + 5]);
      else for (let i = 0; i < 60; i++) await world.publish('orders', i, { key: `k${i % 5}` });
      for (let i = 0; i < 15; i++) {
        await world.clock.advanceBy(random() * 1_500);
        await cut.links[0]!.cut();
        await world.clock.advanceBy(random() < 0.5 ? 0 : random() * 1_500);
        await cut.links[0]!.open();
      }
      await world.clock.advanceBy(600_000);
      expect({
        problems: problems.slice(0, 5),
        finished: finished.size,
        backlog: world.backlog('orders', 's'),
      }).toEqual({
        problems: [],
        finished: 60,
        backlog: 0,
      });
    },
  );
});
