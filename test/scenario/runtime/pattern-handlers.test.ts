// Handlers that take topics by pattern on the embedded broker: topics that come later, letters, and what is told of them.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { defineHandler, fixedBackoff, poison, retry, seconds, success } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

it('gets what comes on its topics, new ones too; each has its own dead letters, which the pattern does not mean (S-42)', async () => {
  const runs: string[] = [];
  await world.publish('orders-eu', 'first');
  const runtime = await world.start({
    handlers: [
      defineHandler({
        name: 'h',
        source: { pattern: /orders-.+/ },
        subscription: 's',
        redelivery: { maxDeliveries: 2, backoff: fixedBackoff(seconds(1)) },
        handle: ({ payload, topic, attempt }) => {
          runs.push(`${String(payload)}#${attempt} ${topic}`);
          if (payload === 'bad') return poison('bad');
          return payload === 'twice' && attempt === 1 ? retry() : success();
        },
      }),
    ],
  });
  await world.clock.advanceBy(0);
  await world.publish('orders-us', 'twice');
  await world.publish('orders-us', 'bad');
  await world.publish('invoices', 'other');
  await world.clock.advanceBy(seconds(61));
  const us = 'persistent://public/default/orders-us';
  const eu = 'persistent://public/default/orders-eu';
  expect(runs).toEqual([`first#1 ${eu}`, `twice#1 ${us}`, `bad#1 ${us}`, `twice#2 ${us}`]);
  expect(world.backlog('orders-us', 's')).toBe(0);
  expect([...(runtime.health()[0]?.topics ?? [])].sort()).toEqual([eu, us]);
  expect(world.broker.hasTopic('orders-us-s-DLQ')).toBe(true);
  expect(runtime.subscription('s', 'orders-us').health().handler).toBe('h');
});
