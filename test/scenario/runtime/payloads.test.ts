import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const orders = topic('orders', { payload: z.object({ id: z.string() }) });
const receipts = topic('receipts', { payload: z.object({ order: z.string() }) });

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

async function startHandler(handle: (order: Delivery<{ id: string }>) => Outcome, options: HandlerOptions = {}) {
  const runs: string[] = [];
  await world.start({
    handlers: [
      defineHandler({
        name: 'billing',
        source: orders,
        subscription: 'billing',
        ...options,
        handle: (order) => {
          runs.push(`${order.payload.id}#${order.attempt}`);
          return handle(order);
        },
      }),
    ],
  });
  return { runs };
}

describe('payloads that cannot be read', () => {
  it('become dead letters with the issues by path, and the handler never sees them', async () => {
    const { runs } = await startHandler(() => success());
    await world.publish('orders', { id: 5 });
    await world.broker.publish('orders', { payload: Buffer.from('{not json'), properties: {} });
    await world.broker.publish('orders', { payload: new Uint8Array(), properties: {} });
    await world.broker.publish('orders', { payload: null, properties: {} });
    await world.broker.publish('orders', { payload: Uint8Array.of(0xff, 0xfe), properties: {} });
    await world.publish('orders', { id: 'good' });
    await world.clock.advanceBy(0);
    expect(runs).toEqual(['good#1']);
    const letters = await world.deadLetters('orders', 'billing');
    expect(letters.map((letter) => letter.properties['pulsework-cause'])).toEqual(Array(5).fill('undecodable'));
    expect(letters[0]!.properties['pulsework-reason']).toMatch(/^payload does not match its schema: id: /);
    expect(letters[3]!.payload).toBeNull();
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it('a schema that throws is a fault of the program, not of the message', async () => {
    let broken = true;
    const schema = z.object({ id: z.string() }).refine(() => {
      if (broken) throw new TypeError('validator broken');
      return true;
    });
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('odd', { payload: schema }),
          subscription: 's',
          handle: () => success(),
        }),
      ],
    });
    await world.publish('odd', { id: 'a' });
    await world.clock.advanceBy(500);
    broken = false;
    await world.clock.advanceBy(seconds(1));
    expect(world.backlog('odd', 's')).toBe(0);
    expect(await world.deadLetters('odd', 's')).toEqual([]);
  });
});

describe('follow-ups that can never be sent', () => {
  it('are a failed run with the cause publish-refused', async () => {
    const { runs } = await startHandler(() => success(receipts.message({ order: 7 } as never)), {
      redelivery: { maxDeliveries: 2, backoff: fixedBackoff(10) },
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(1));
    expect(runs).toHaveLength(2);
    const [letter] = await world.deadLetters('orders', 'billing');
    expect(letter!.properties['pulsework-cause']).toBe('publish-refused');
    expect(await world.read('receipts')).toEqual([]);
  });

  it.each([
    ['a topic that is not declared', { publishes: [] }, receipts.message({ order: 'a' })],
    ['a message that is too large', {}, receipts.message({ order: 'x'.repeat(6 * 1024 * 1024) })],
    ['an unknown option', {}, receipts.message({ order: 'a' }, { keey: 'k' } as never)],
    ['a property that is no text', {}, receipts.message({ order: 'a' }, { properties: { n: 5 as never } })],
  ] as const)('%s', async (_, options, message) => {
    await startHandler(() => success(message), { ...options, redelivery: { maxDeliveries: 1 } });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    const [letter] = await world.deadLetters('orders', 'billing');
    expect(letter!.properties['pulsework-cause']).toBe('publish-refused');
  });
});
