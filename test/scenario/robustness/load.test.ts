// Much of everything: nothing lost, nothing settled twice, and when all is done nothing is left in memory or on timers.
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/index.js';
import { defer, defineHandler, poison, retry, retryAfter, seconds, skip, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { SettlementLedger } from '../../support/settlement-ledger.js';
import { World } from '../../support/runtime-world.js';
import { seeded } from '../../support/seeded.js';

function randomOutcome(random: () => number): Outcome {
  const dice = random();
  if (dice < 0.8) return success();
  if (dice < 0.85) return skip('x');
  if (dice < 0.9) return retry();
  if (dice < 0.93) return retryAfter(random() * 5_000);
  if (dice < 0.96) return defer(random() * 5_000);
  if (dice < 0.98) return poison('x');
  throw new Error('thrown');
}

describe('load', () => {
  it.each([
    ['shared', 'none'],
    ['key-shared', 'key'],
    ['exclusive', 'partition'],
  ] as const)(
    'of 20,000 messages with random outcomes on %s, ordering %s, ends with everything settled once',
    async (type, ordering) => {
      const world = new World();
      const random = seeded(7);
      const ledger = new SettlementLedger();
      const handled = new Set<unknown>();
      let running = 0;
      let most = 0;
      const perKey = new Map<string, number>();
      let overlaps = 0;
      const runtime = await world.start({
        transport: ledger.wrap(embedded({ broker: world.broker })),
        logger: { isEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} },
        telemetry: undefined,
        handlers: [
          defineHandler({
            name: 'h',
            source: topic('orders'),
            subscription: 's',
            type,
            ordering,
            maxHeld: 50,
            concurrency: 8,
            redelivery: { maxDeliveries: 4, backoff: () => 100 },
            handle: async (d) => {
              most = Math.max(most, ++running);
              const key = d.key ?? '';
              const same = (perKey.get(key) ?? 0) + 1;
              perKey.set(key, same);
              if (same > 1 && ordering !== 'none') overlaps++;
              handled.add(d.payload);
              await Promise.resolve();
              running--;
              perKey.set(key, same - 1);
              return randomOutcome(random);
            },
          }),
        ],
      });
      for (let i = 0; i < 20_000; i++) await world.publish('orders', i, { key: `k${Math.floor(random() * 500)}` });
      for (let i = 0; i < 20_000 && world.backlog('orders', 's') > 0; i++) await world.clock.advanceBy(seconds(10));
      expect({ backlog: world.backlog('orders', 's'), handled: handled.size, overlaps }).toEqual({
        backlog: 0,
        handled: 20_000,
        overlaps: 0,
      });
      expect(most).toBeLessThanOrEqual(8);
      expect(ledger.violations).toEqual([]);
      expect(runtime.health()[0]).toMatchObject({ running: 0, held: 0, kept: 0 });
      await world.drain(runtime);
      expect(world.clock.pendingTimers).toEqual([]);
    },
    60_000,
  );

  it('of 500 handlers in one runtime starts, handles one message each, and ends', async () => {
    const world = new World();
    let runs = 0;
    const handlers = Array.from({ length: 500 }, (_, i) =>
      defineHandler({ name: `h${i}`, source: topic(`t${i}`), subscription: 's', handle: () => (runs++, success()) }),
    );
    const runtime = await world.start({ handlers });
    for (let i = 0; i < 500; i++) await world.publish(`t${i}`, i);
    await world.clock.advanceBy(seconds(1));
    expect(runs).toBe(500);
    await world.drain(runtime);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('of 2,000 keys behind failing heads ends', async () => {
    const world = new World();
    const quiet = { isEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} };
    let failing = true;
    await world.start({
      logger: quiet,
      telemetry: undefined,
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders'),
          subscription: 's',
          type: 'key-shared',
          ordering: 'key',
          maxHeld: 2_001,
          redelivery: { backoff: () => seconds(60) },
          handle: () => (failing ? retry() : success()),
        }),
      ],
    });
    for (let round = 0; round < 2; round++)
      for (let i = 0; i < 2_000; i++) await world.publish('orders', i, { key: `k${i}` });
    await world.clock.advanceBy(seconds(1));
    failing = false;
    await world.clock.advanceBy(seconds(61));
    expect(world.backlog('orders', 's')).toBe(0);
  }, 60_000);
});
