// Client-side delayed delivery: a message with a target time is never handed to a handler before it, spends no attempt
// for waiting, and comes again when the process that kept it has gone.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Transport } from '../../../src/index.js';
import { defineHandler, hours, retryAfter, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

interface Seen {
  readonly payload: unknown;
  readonly atMs: number;
  readonly attempt: number;
}

function setUp(options: Partial<HandlerOptions>, outcomeOf: (delivery: Delivery) => Outcome = () => success()) {
  const world = new World();
  const startMs = world.clock.now();
  const seen: Seen[] = [];
  const handler = defineHandler({
    name: 'h',
    source: topic('t'),
    subscription: 's',
    delayedDelivery: 'client',
    ...options,
    handle: (delivery) => {
      seen.push({ payload: delivery.payload, atMs: world.clock.now() - startMs, attempt: delivery.attempt });
      return outcomeOf(delivery);
    },
  });
  const publish = (value: unknown, afterMs: number) => world.publish('t', value, { deliverAtMs: startMs + afterMs });
  return { world, seen, handler, publish };
}

/** A broker that hands on at once whatever the message says, as older brokers and Exclusive subscriptions do. */
function withoutDelays(world: World): Transport {
  const inner = embedded({ broker: world.broker });
  const capabilities = new Set(inner.capabilities);
  capabilities.delete('delayed-delivery');
  return transportWith(inner, {
    name: 'undelayed',
    capabilities,
    publisher: async (name, options) => {
      const publisher = await inner.publisher(name, options);
      return {
        topic: name,
        nextSequenceId: () => publisher.nextSequenceId(),
        publish: ({ deliverAtMs: _, ...message }, id) => publisher.publish(message, id),
        close: () => publisher.close(),
      };
    },
  });
}

describe('client-side delayed delivery', () => {
  it.each(['exclusive', 'failover'] as const)(
    'on %s keeps a message in place until its time, others pass',
    async (type) => {
      const { world, seen, handler, publish } = setUp({ type });
      await world.start({ handlers: [handler] });
      await publish('late', seconds(30));
      await publish('soon', seconds(10));
      await world.publish('t', 'now');
      await world.clock.advanceBy(hours(1));

      // Failover makes its consumer active a second after it came.
      expect(seen).toEqual([
        { payload: 'now', atMs: type === 'failover' ? 1_000 : 0, attempt: 1 },
        { payload: 'soon', atMs: seconds(10), attempt: 1 },
        { payload: 'late', atMs: seconds(30), attempt: 1 },
      ]);
      await world.end();
    },
  );

  // Y-20: only ids wait, and the redelivery that follows when due costs no attempt (Y-22).
  it.each(['shared', 'key-shared'] as const)(
    'Y-20, Y-22: on %s only its id waits, and the first delivery is attempt 1',
    async (type) => {
      const { world, seen, handler } = setUp({ type }, ({ attempt }) => (attempt === 1 ? retryAfter(5) : success()));
      const runtime = await world.start({ handlers: [handler], transport: withoutDelays(world) });
      const at = String(world.clock.now() + seconds(30));
      await world.publish('t', 'late', { properties: { 'pulsework-deliver-at': at }, key: 'k' });
      await world.clock.advanceBy(seconds(29));
      expect(runtime.health()[0]).toMatchObject({ held: 1, kept: 0, running: 0 });
      await world.clock.advanceBy(hours(1));

      expect(seen).toEqual([
        { payload: 'late', atMs: seconds(30), attempt: 1 },
        { payload: 'late', atMs: seconds(30) + 5, attempt: 2 },
      ]);
      await world.end();
    },
  );

  // Y-24: the next consumer reads the time again.
  it('Y-24: comes back when its process has gone, and waits again', async () => {
    const { world, seen, handler } = setUp({});
    const at = String(world.clock.now() + seconds(30));
    const first = await world.start({ handlers: [handler], transport: withoutDelays(world) });
    await world.publish('t', 'late', { properties: { 'pulsework-deliver-at': at } });
    await world.clock.advanceBy(seconds(10));
    await first.close();
    await world.start({ handlers: [handler], transport: withoutDelays(world) });
    await world.clock.advanceBy(hours(1));

    expect(seen).toEqual([{ payload: 'late', atMs: seconds(30), attempt: 1 }]);
    await world.end();
  });

  it('publishes the time as a property where the transport cannot set it', async () => {
    const { world, handler } = setUp({});
    const runtime = await world.start({ handlers: [handler], transport: withoutDelays(world) });
    await runtime.publisher(topic('other')).publish('x', { deliverAfterMs: 1_000 });

    expect((await world.read('other')).map(({ properties }) => properties['pulsework-deliver-at'])).toEqual([
      String(world.clock.now() + 1_000),
    ]);
    await world.end();
  });

  it('is bounded by maxHeld: what comes behind waits too, and nothing is early or lost', async () => {
    const { world, seen, handler } = setUp({ maxHeld: 2, concurrency: 1 });
    const runtime = await world.start({ handlers: [handler], transport: withoutDelays(world) });
    const at = String(world.clock.now() + seconds(30));
    for (const value of ['a', 'b', 'c', 'd'])
      await world.publish('t', value, { properties: { 'pulsework-deliver-at': at } });
    await world.publish('t', 'now');
    await world.clock.advanceBy(seconds(1));
    expect(runtime.health()[0]?.pausedBy).toContain('held-full');
    await world.clock.advanceBy(hours(1));

    expect(seen.map(({ payload }) => payload).toSorted()).toEqual(['a', 'b', 'c', 'd', 'now']);
    expect(seen.filter(({ atMs, payload }) => payload !== 'now' && atMs < seconds(30))).toEqual([]);
    await world.end();
  });
});

describe('the choice "auto"', () => {
  it('leaves it to the broker where broker and type can', async () => {
    const { world, seen, handler, publish } = setUp({ delayedDelivery: 'auto' });
    const runtime = await world.start({ handlers: [handler] });
    await publish('late', seconds(30));
    await world.clock.advanceBy(seconds(20));
    expect(runtime.health()[0]).toMatchObject({ held: 0, kept: 0 });
    await world.clock.advanceBy(hours(1));
    expect(seen.map(({ attempt }) => attempt)).toEqual([1]);
    await world.end();
  });

  it('delays here on Exclusive, where brokers do not', async () => {
    const { world, seen, handler, publish } = setUp({ delayedDelivery: 'auto', type: 'exclusive' });
    await world.start({ handlers: [handler] });
    await publish('late', seconds(30));
    await world.clock.advanceBy(hours(1));
    expect(seen).toEqual([{ payload: 'late', atMs: seconds(30), attempt: 1 }]);
    await world.end();
  });

  it('"broker" takes what comes when it comes', async () => {
    const { world, seen, handler, publish } = setUp({ delayedDelivery: 'broker', type: 'exclusive' });
    await world.start({ handlers: [handler] });
    await publish('late', seconds(30));
    await world.clock.advanceBy(1);
    expect(seen).toHaveLength(1);
    await world.end();
  });
});
