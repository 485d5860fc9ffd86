// What a lost connection does to deliveries that are kept here: they may wait, they may not stop anything for ever.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  TransportError,
  defer,
  defineHandler,
  dependencyDown,
  poison,
  retry,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import type { CutSubscription } from '../../support/cut-transport.js';
import { CutTransport } from '../../support/cut-transport.js';
import { transportWith } from '../../support/transport-with.js';

let world: World;
let cut: CutTransport;
beforeEach(() => {
  world = new World();
  cut = new CutTransport(embedded({ broker: world.broker }));
});

async function start(handle: (d: Delivery) => Outcome | Promise<Outcome>, options: HandlerOptions = {}) {
  const runs: string[] = [];
  const runtime = await world.start({
    transport: cut.transport,
    handlers: [
      defineHandler({
        name: 'h',
        source: topic('orders'),
        subscription: 's',
        ...options,
        handle: (d) => {
          runs.push(`${String(d.payload)}#${d.attempt}`);
          return handle(d);
        },
      }),
    ],
  });
  return { runtime, runs, link: cut.links[0] as CutSubscription };
}

describe('a connection lost', () => {
  it('while a dependency is down does not pause the subscription for ever', async () => {
    // Section 3: the probe runs again, then it resumes. Its copy must be let in, or another delivery become the probe.
    let down = true;
    const { runs, link } = await start(() => (down ? dependencyDown('db') : success()));
    await world.publish('orders', 1);
    await world.publish('orders', 2);
    await world.clock.advanceBy(0);
    await link.cut();
    await world.clock.advanceBy(100);
    await link.open();
    down = false;
    await world.clock.advanceBy(seconds(600));
    expect(runs.length).toBeGreaterThan(2);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('while as many are kept as may does not pause the subscription for ever', async () => {
    // Sleepers are not waiting for a due time here: they must not count against maxHeld until their copies have come.
    let fail = true;
    const { link } = await start(() => (fail ? defer(seconds(10)) : success()), { maxHeld: 2, concurrency: 1 });
    for (const id of [1, 2, 3]) await world.publish('orders', id);
    await world.clock.advanceBy(0);
    await link.cut();
    await link.open();
    fail = false;
    await world.clock.advanceBy(seconds(600));
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('with the answer to an acknowledgement leaves nothing behind for ever', async () => {
    // The broker has it, so no copy ever comes: the record must not stay, nor count as held.
    const { runtime, link } = await start(() => success());
    link.loseNextAnswer = true;
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await link.open();
    await world.clock.advanceBy(seconds(3_600));
    expect(world.backlog('orders', 's')).toBe(0);
    expect(runtime.health()[0]?.kept).toBe(0);
  });

  it('with the answer to an acknowledgement does not block the lane of the key for ever', async () => {
    // Order per key, but nothing may wait behind a message that the broker no longer has.
    const { runs, link } = await start(() => success(), { type: 'key-shared', ordering: 'key' });
    link.loseNextAnswer = true;
    await world.publish('orders', 1, { key: 'k' });
    await world.clock.advanceBy(0);
    await link.open();
    await world.publish('orders', 2, { key: 'k' });
    await world.clock.advanceBy(seconds(3_600));
    expect(runs).toContain('2#1');
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('with the answer to an acknowledgement does not keep a drain from ending', async () => {
    // Drain: lets handlers finish, gives back the rest. The record is known to be back at the broker (or acknowledged).
    const { runtime, link } = await start(() => success());
    link.loseNextAnswer = true;
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await link.open();
    let ended = false;
    void runtime.drain({ deadlineMs: Infinity }).then(() => (ended = true));
    await world.clock.advanceBy(seconds(3_600));
    expect(ended).toBe(true);
  });

  it('during a drain gives back what waits for its copy, which is no longer received', async () => {
    // A dead letter that could not be published and whose connection is lost is back at the broker: nothing to wait for.
    const { runtime, link } = await start(() => poison('x'));
    cut.publishFails = true;
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await link.cut();
    await link.open();
    cut.publishFails = false;
    let ended = false;
    void runtime.drain({ deadlineMs: Infinity }).then(() => (ended = true));
    await world.clock.advanceBy(seconds(7_200));
    expect(ended).toBe(true);
  });

  it('while a message of a key is on its way to its lane does not let it pass earlier ones of the key', async () => {
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const { runs, link } = await start(
      async ({ payload }) => (payload === 'a' ? ended.then(() => success()) : success()),
      {
        type: 'key-shared',
        ordering: 'key',
      },
    );
    link.losesWhileReceiving = (message) => payloadOf(message) === 'c';
    for (const value of ['a', 'b', 'c']) await world.publish('orders', value, { key: 'k' });
    await world.clock.advanceBy(0);
    expect(link.losesWhileReceiving).toBeUndefined();

    await link.open();
    await world.clock.advanceBy(0);
    end();
    await world.clock.advanceBy(seconds(1));
    expect(runs).toEqual(['a#1', 'b#1', 'c#1']);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('lets later messages of a key run when the kept one went to another process and was settled there', async () => {
    // Its copy never comes here: the lane must not stay blocked once newer messages of the key arrive.
    let fail = true;
    const { runs, link } = await start((d) => (fail && d.payload === 1 ? retry() : success()), {
      type: 'key-shared',
      ordering: 'key',
    });
    await world.publish('orders', 1, { key: 'k' });
    await world.clock.advanceBy(0);
    await link.cut();
    const other = await embedded({ broker: world.broker }).subscribe({
      topics: ['orders'],
      subscription: 's',
      type: 'key-shared',
      initialPosition: 'earliest',
      prefetch: 10,
      consumerName: 'other',
    });
    const message = await other.receive(new AbortController().signal);
    await other.acknowledge([message!.id]);
    await other.close();
    await link.open();
    fail = false;
    await world.publish('orders', 2, { key: 'k' });
    await world.clock.advanceBy(seconds(3_600));
    expect(runs).toContain('2#1');
  });

  it("by somebody else's seek while a dependency is down does not pause the subscription for ever", async () => {
    // The same on the embedded transport alone: a seek disconnects every consumer of the subscription.
    let down = true;
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders'),
          subscription: 's',
          handle: () => (down ? dependencyDown('db') : success()),
        }),
      ],
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const operator = await embedded({ broker: world.broker }).subscribe({
      topics: ['orders'],
      subscription: 's',
      type: 'shared',
      initialPosition: 'earliest',
      prefetch: 0,
      consumerName: 'operator',
    });
    await operator.seek('earliest');
    await operator.close();
    down = false;
    await world.clock.advanceBy(seconds(3_600));
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('while the probe itself runs and finds its dependency down does not pause the subscription for ever', async () => {
    // It ends over a connection that is gone: it cannot be the probe any longer, its copy must be let in.
    let down = true;
    const { link } = await start(async () => {
      const outcome = down ? dependencyDown('db') : success();
      await new Promise<void>((resolve) => world.clock.setTimer(100, resolve));
      return outcome;
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(50);
    await link.cut();
    await world.clock.advanceBy(100);
    down = false;
    await link.open();
    await world.clock.advanceBy(seconds(3_600));
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('while the probe waits for a slot does not pause the subscription for ever', async () => {
    // Paused by the operator, the probe that is due waits; it is dropped with its connection and the outage must end.
    let down = true;
    const { runtime, link } = await start(() => (down ? dependencyDown('db') : success()));
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(5));
    down = false;
    await link.cut();
    await link.open();
    runtime.subscription('s', 'orders').resume();
    await world.clock.advanceBy(seconds(3_600));
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('the connection of one of two topics lost', () => {
  it('lets what came over the other one run, although it waited behind a head that is gone', async () => {
    let lose: (() => void) | undefined;
    const inner = embedded({ broker: world.broker });
    const transport = transportWith(inner, {
      name: 'two topics',
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        const onState = subscription.onState.bind(subscription);
        subscription.onState = (report) => {
          onState(report);
          lose = () => report({ topic: 'persistent://public/default/a', connection: 1, state: 'lost' });
        };
        return subscription;
      },
    });
    const runs: unknown[] = [];
    const handler = defineHandler({
      name: 'h',
      source: [topic('a'), topic('b')],
      subscription: 's',
      type: 'key-shared',
      ordering: 'key',
      concurrency: 1,
      prefetch: 10,
      handle: async ({ payload }) => {
        runs.push(payload);
        if (payload === 'head') return defer(500);
        await new Promise<void>((resolve) => world.clock.setTimer(1_000, resolve));
        return success();
      },
    });
    await world.start({ transport, handlers: [handler] });
    await world.publish('a', 'head', { key: 'k' });
    await world.clock.advanceBy(10);
    await world.publish('b', 'behind', { key: 'k' });
    await world.clock.advanceBy(10);
    await world.publish('b', 'busy', { key: 'other' });
    // The head is due, and waits for the only slot.
    await world.clock.advanceBy(600);
    lose?.();
    await world.clock.advanceBy(seconds(30));

    expect(runs).toContain('behind');
    expect(world.backlog('b', 's')).toBe(0);
    await world.end();
  });
});

describe('a settlement that goes on with the copy of its message', () => {
  it('still tells when the run started, also where its follow-up is then refused for good', async () => {
    let failure = new TransportError('CONNECTION_LOST', 'away', { retriable: true });
    const refusing = transportWith(cut.transport, {
      publisher: async (name, options) => {
        const publisher = await cut.transport.publisher(name, options);
        return name.endsWith('/receipts') ? { ...publisher, publish: () => Promise.reject(failure) } : publisher;
      },
    });
    const handler = defineHandler({
      name: 'h',
      source: topic('orders'),
      subscription: 's',
      redelivery: { maxDeliveries: 1 },
      handle: () => success(topic('receipts').message(1)),
    });
    await world.start({ transport: refusing, handlers: [handler] });
    await world.publish('orders', 1);
    await world.clock.advanceBy(100);
    const link = cut.links[0] as CutSubscription;
    await link.cut();
    failure = new TransportError('MESSAGE_TOO_LARGE', 'too large', { retriable: false });
    await link.open();
    await world.clock.advanceBy(seconds(30));

    const [report] = world.reports;
    expect(report?.cause).toBe('publish-refused');
    expect(report?.durationMs).toBeLessThan(seconds(31));
  });
});
