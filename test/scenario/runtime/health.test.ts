// What `health()` tells of a subscription: how old things are, and what waits.
import { beforeEach, expect, it } from 'vitest';
import type { Delivery, Outcome } from '../../../src/index.js';
import { defineHandler, minutes, retry, seconds, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

function handler(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, options: object = {}) {
  return defineHandler({ name: 'billing', source: topic('orders'), subscription: 's', ...options, handle });
}

it('tells how old things are and what is blocked', async () => {
  const options = {
    type: 'key-shared',
    ordering: 'key',
    orderedNegativeAck: 'disabled',
    redelivery: { maxDeliveries: 5, backoff: () => minutes(1) },
  };
  let hang = false;
  const handle = (): Outcome | Promise<Outcome> => (hang ? new Promise(() => undefined) : retry());
  const runtime = await world.start({ handlers: [handler(handle, options)] });
  const health = () => runtime.health()[0];
  expect(health()).toMatchObject({ oldestRunMs: undefined, lastDeliveryMs: undefined, oldestFailureMs: undefined });

  const startMs = world.clock.now();
  for (const value of ['a', 'b']) await world.publish('orders', value, { key: 'k' });
  await world.clock.advanceBy(seconds(10));
  expect(health()).toMatchObject({
    lastDeliveryMs: startMs,
    oldestFailureMs: seconds(10),
    kept: 1,
    blocked: 0,
    waitingKeys: 1,
    backlog: 2,
  });
  hang = true;
  await world.clock.advanceBy(seconds(55));
  expect(health()).toMatchObject({ running: 1, oldestRunMs: seconds(5), oldestFailureMs: seconds(65) });
});
