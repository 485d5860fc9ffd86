// When `receive` itself fails: it is said and tried again, and the retry letters of a handler never hold its own messages up.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Subscription, Transport } from '../../../src/index.js';
import { TransportError, defineHandler, minutes, retryAfter, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

let world: World;
/** Whether the subscription on topics with this ending fails to receive. */
let fails: (topic: string) => boolean;
/** Whether the transport closes it by itself. */
let ends: (topic: string) => boolean;
let calls: number;
beforeEach(() => {
  world = new World();
  fails = () => false;
  ends = () => false;
  calls = 0;
});

/** The embedded transport; `receive` rejects while `fails` says so. */
function failing(): Transport {
  const inner = embedded({ broker: world.broker });
  return transportWith(inner, {
    name: 'failing',
    subscribe: async (spec) => {
      const subscription = await inner.subscribe(spec);
      const receive: Subscription['receive'] = (signal) => {
        if (spec.topics.some((name) => ends(name))) return Promise.resolve(undefined);
        if (!spec.topics.some((name) => fails(name))) return subscription.receive(signal);
        calls++;
        return Promise.reject(new TransportError('CONNECTION_LOST', 'cannot receive', { retriable: true }));
      };
      return new Proxy(subscription, {
        get: (target, name) => {
          if (name === 'receive') return receive;
          const value: unknown = Reflect.get(target, name);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    },
  });
}

async function start(retryTopic: boolean) {
  const runs: string[] = [];
  const handler = defineHandler({
    name: 'h',
    source: topic('orders'),
    subscription: 's',
    retryTopic,
    handle: ({ payload, attempt }) => {
      runs.push(`${String(payload)}#${attempt}`);
      return payload === 'late' && attempt === 1 ? retryAfter(minutes(20)) : success();
    },
  });
  const runtime = await world.start({ transport: failing(), handlers: [handler] });
  return { runtime, runs };
}

const warnings = (): number => world.log.filter(({ message }) => message === 'receiving failed').length;

describe('a subscription that fails to receive', () => {
  it('is asked again each second, with a warning, and goes on when it can', async () => {
    fails = () => true;
    const { runs } = await start(false);
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(5));
    expect(calls).toBe(6);
    expect(warnings()).toBe(6);

    fails = () => false;
    await world.clock.advanceBy(seconds(1));
    expect(runs).toEqual(['a#1']);
  });

  it('is not waited for by a drain, and leaves no timer', async () => {
    fails = () => true;
    const { runtime } = await start(false);
    await world.clock.advanceBy(500);
    const drained = runtime.drain();
    await world.clock.advanceBy(0);
    expect(await drained).toEqual({ complete: true, stillRunning: [] });
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe('with retry letters', () => {
  it('one side that fails does not slow the other', async () => {
    fails = (name) => name.endsWith('-RETRY');
    const { runs } = await start(true);
    for (let i = 0; i < 200; i++) await world.publish('orders', i);
    await world.clock.advanceBy(seconds(2));
    expect(runs).toHaveLength(200);
    expect(warnings()).toBe(3);
  });

  it('letters come while the own topic fails', async () => {
    const { runs } = await start(true);
    await world.publish('orders', 'late');
    await world.clock.advanceBy(seconds(1));
    fails = (name) => name.endsWith('/orders');
    await world.publish('orders', 'kept out');
    await world.clock.advanceBy(minutes(21));
    // The call that was under way when it began to fail still took one.
    expect(runs).toEqual(['late#1', 'kept out#1', 'late#2']);
    expect(warnings()).toBeGreaterThan(1_000);
  });

  it('a retry letter subscription that ends by itself is told by name, and nothing more is received', async () => {
    ends = (name) => name.endsWith('-RETRY');
    const { runtime } = await start(true);
    await world.clock.advanceBy(0);

    const errors = world.log.filter(({ level }) => level === 'error');
    expect(errors.map(({ message }) => message)).toEqual([
      'the subscription on the retry letter topic ended by itself',
      'the subscription ended by itself; nothing more is received',
    ]);
    expect(errors[0]?.fields['topics']).toEqual(['persistent://public/default/orders-s-RETRY']);
    expect(runtime.health()[0]?.state).toBe('degraded');
  });
});
