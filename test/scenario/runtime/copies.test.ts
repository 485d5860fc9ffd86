// Copies of messages that were acknowledged: the broker is told again, until it knows.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { defineHandler, minutes, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import type { FaultPlan } from '../../../src/testing.js';
import { FaultyTransport } from '../../../src/testing.js';
import { World, payloadOf } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

/** A batch whose first message was acknowledged comes again whole, and the first call after that fails. */
async function copyNotAcknowledged(fault: FaultPlan['fault']): Promise<void> {
  const plan = { at: 0, fault, clock: world.clock };
  const transport = new FaultyTransport(embedded({ broker: world.broker }), plan);
  await world.start({
    transport,
    handlers: [
      defineHandler({
        name: 'ledger',
        source: topic('accounts'),
        subscription: 's',
        type: 'key-shared',
        ordering: 'key',
        handle: async ({ payload }) => {
          if (payload === 'a2') await new Promise<void>((resolve) => world.clock.setTimer(100, resolve));
          return success();
        },
      }),
    ],
  });
  await world.publishBatch('accounts', ['a1', 'a2'], { key: 'a' });
  await world.clock.advanceBy(50);
  plan.at = transport.counted + 1;
  world.broker.unload('accounts');
}

it.each(['throws', 'rejects-late', 'hangs'] as const)(
  'a copy whose acknowledgement %s is acknowledged again, and so keeps no key waiting (K-54)',
  async (fault) => {
    await copyNotAcknowledged(fault);
    await world.clock.advanceBy(minutes(1));
    expect(world.backlog('accounts', 's')).toBe(0);
  },
);

it('not once the subscription is closed', async () => {
  await copyNotAcknowledged('throws');
  await world.clock.advanceBy(seconds(1) / 2);
  await world.end();
  await world.clock.advanceBy(minutes(1));
  expect((await world.read('accounts')).map(payloadOf)).toEqual(['a1', 'a2']);
  expect(world.log.filter(({ message }) => message.includes('acknowledging a copy'))).toHaveLength(1);
});
