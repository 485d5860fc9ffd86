// Plugins, drains, starts and time limits that misbehave: nothing may hang for ever, nothing may be lost.
import { beforeEach, describe, expect, it } from 'vitest';
import type {
  Delivery,
  HandlerOptions,
  MessageId,
  Outcome,
  Runtime,
  RuntimeOptions,
  Transport,
} from '../../../src/index.js';
import { defineHandler, poison, retry, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';
import { transportWith } from '../../support/transport-with.js';

let world: World;
beforeEach(() => void (world = new World()));

const never = (): Promise<never> => new Promise(() => undefined);
const receipts = topic('receipts');

async function start(
  handle: (d: Delivery) => Outcome | Promise<Outcome>,
  options: HandlerOptions = {},
  runtime: Partial<RuntimeOptions> = {},
): Promise<Runtime> {
  return world.start({
    handlers: [defineHandler({ name: 'h', source: topic('orders'), subscription: 's', ...options, handle })],
    ...runtime,
  });
}

async function ends(work: Promise<unknown>, withinMs: number): Promise<boolean> {
  let ended = false;
  const end = (): void => void (ended = true);
  void work.then(end, end);
  await world.clock.advanceBy(withinMs);
  return ended;
}

/** The embedded transport with some methods replaced. */
function embeddedWith(change: (inner: Transport) => Partial<Transport>): Transport {
  const inner = embedded({ broker: world.broker });
  return transportWith(inner, change(inner));
}

describe('a drain', () => {
  it('ends by its deadline when onDrain never resolves', async () => {
    // The deadline is the drain's, hooks included: the longest a drain takes is known.
    const runtime = await start(() => success(), {}, { plugins: [{ name: 'p', onDrain: never }] });
    expect(await ends(runtime.drain({ deadlineMs: seconds(5) }), seconds(300))).toBe(true);
  });

  it('ends when onClose never resolves', async () => {
    const runtime = await start(() => success(), {}, { plugins: [{ name: 'p', onClose: never }] });
    expect(await ends(runtime.drain({ deadlineMs: seconds(5) }), seconds(300))).toBe(true);
  });

  it('ends when the resolver never closes', async () => {
    const runtime = await start(() => success(), {}, { resolve: { resolve: () => ({}), close: never } });
    expect(await ends(runtime.drain({ deadlineMs: seconds(5) }), seconds(300))).toBe(true);
  });

  it('of many subscriptions on a broker that does not answer ends in about one call timeout, not one each', async () => {
    const transport = embeddedWith((inner) => ({
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        return Object.assign(Object.create(subscription) as typeof subscription, {
          receive: (signal: AbortSignal) => subscription.receive(signal),
          onState: (report: never) => subscription.onState(report),
          close: never,
        });
      },
    }));
    const handlers = Array.from({ length: 50 }, (_, i) =>
      defineHandler({ name: `h${i}`, source: topic(`t${i}`), subscription: 's', handle: () => success() }),
    );
    const runtime = await world.start({ transport, handlers });
    expect(await ends(runtime.drain({ deadlineMs: seconds(5) }), seconds(120))).toBe(true);
  });

  it('spends no attempt of a run it interrupted, also when the time limit gives that run up meanwhile', async () => {
    world.endsEarly = true;
    // "Drain is not failure": no dead letter although maxDeliveries is 1.
    const runtime = await start(never, { timeoutMs: 1_000, abandonAfterMs: 100, redelivery: { maxDeliveries: 1 } });
    await world.publish('orders', 1);
    await world.clock.advanceBy(900);
    await world.drain(runtime, 0);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it('with an infinite deadline ends although a dead letter is refused for good', async () => {
    // It waits for what will end; a refused dead letter will not, and its message is safe at the broker.
    world.broker.createSubscription('no', 's');
    world.broker.terminate('no');
    const runtime = await start(() => poison('x'), { deadLetterTopic: 'no' });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    expect(await ends(runtime.drain({ deadlineMs: Infinity }), seconds(86_400))).toBe(true);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it.each([NaN, -1, 'soon' as never])('refuses the deadline %s by name', async (deadlineMs) => {
    const runtime = await start(() => success());
    let thrown: unknown;
    try {
      await Promise.race([runtime.drain({ deadlineMs }), world.clock.advanceBy(0)]);
    } catch (error) {
      thrown = error;
    }
    expect(String(thrown)).toContain('deadlineMs');
  });

  it('runs no handler after it ended', async () => {
    // The payload was still being checked when the deadline passed.
    let answer: (result: { value: unknown }) => void = () => undefined;
    const validate = () => new Promise<{ value: unknown }>((resolve) => (answer = resolve));
    let runs = 0;
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders', { payload: { '~standard': { version: 1, vendor: 'x', validate } } }),
          subscription: 's',
          handle: () => (runs++, success()),
        }),
      ],
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    answer({ value: 1 });
    await world.clock.advanceBy(0);
    expect(runs).toBe(0);
  });

  it('leaves no publish of a user without an answer', async () => {
    const transport = embeddedWith((inner) => ({
      publisher: async (name) => {
        const publisher = await inner.publisher(name);
        return {
          topic: publisher.topic,
          nextSequenceId: () => publisher.nextSequenceId(),
          publish: never,
          close: () => publisher.close(),
        };
      },
    }));
    const runtime = await start(() => success(), {}, { transport });
    const answer = runtime
      .publisher(receipts)
      .publish(1)
      .catch((error: unknown) => error);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    expect(await answer).toMatchObject({ code: 'ALREADY_CLOSED' });
  });

  it('leaves no timer behind when an interrupted handler ends late', async () => {
    let finish: (outcome: Outcome) => void = () => undefined;
    const runtime = await start(() => new Promise((resolve) => (finish = resolve)));
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    finish(success());
    await world.clock.advanceBy(0);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe('a start', () => {
  it('that timed out closes the subscription that opened late', async () => {
    // All or nothing: a consumer nobody knows of would hold messages for ever.
    let closed = false;
    const transport = embeddedWith((inner) => ({
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        await new Promise<void>((resolve) => world.clock.setTimer(seconds(31), resolve));
        return Object.assign(Object.create(subscription) as typeof subscription, {
          close: async () => void (closed = true),
        });
      },
      close: async () => undefined,
    }));
    const starting = start(() => success(), {}, { transport });
    expect(await ends(starting, seconds(60))).toBe(true);
    expect(closed).toBe(true);
  });

  it.each([
    ['a plugin that is null', { plugins: [null as never] }],
    ['a plugin whose "after" is a text', { plugins: [{ name: 'a', after: 'b' as never }] }],
    ['a plugin whose hook is no function', { plugins: [{ name: 'a', aroundHandler: 'x' as never }] }],
    ['a logger without methods', { logger: {} as never }],
    ['a clock without methods', { clock: {} as never }],
    ['telemetry that is a text', { telemetry: 'x' as never }],
    ['a resolver that is a number', { resolve: 5 as never }],
  ])('with %s is refused as a ConfigurationError', async (_, options) => {
    const error = await start(() => success(), {}, options).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'CONFIGURATION_INVALID' });
  });
});

describe('a plugin around publishing', () => {
  async function follow(aroundPublish: NonNullable<NonNullable<RuntimeOptions['plugins']>[number]['aroundPublish']>) {
    const failing = { now: true };
    const transport = embeddedWith((inner) => ({
      publisher: async (name) => {
        const publisher = await inner.publisher(name);
        return {
          topic: publisher.topic,
          nextSequenceId: () => publisher.nextSequenceId(),
          publish: async (message, sequenceId): Promise<MessageId> => {
            await new Promise<void>((resolve) => world.clock.setTimer(100, resolve));
            if (failing.now) throw Object.assign(new Error('broker is away'), { retriable: true });
            return publisher.publish(message, sequenceId);
          },
          close: () => publisher.close(),
        };
      },
    }));
    const unhandled = await unhandledDuring(async () => {
      await start(() => success(receipts.message(1)), {}, { transport, plugins: [{ name: 'p', aroundPublish }] });
      await world.publish('orders', 1);
      await world.clock.advanceBy(seconds(10));
    });
    return { unhandled, backlog: world.backlog('orders', 's') };
  }

  it('that forgets to wait for next() does not lose the follow-up', async () => {
    // Nothing lost: the receipt is awaited, then the original is acknowledged, whatever the plugin awaits.
    expect(
      await follow(async (request, next) => {
        void next(request);
      }),
    ).toEqual({ unhandled: [], backlog: 1 });
  });

  it('that swallows the failure of next() does not lose the follow-up', async () => {
    expect(
      await follow(async (request, next) => {
        await next(request).catch(() => undefined);
      }),
    ).toEqual({ unhandled: [], backlog: 1 });
  });

  it('that calls next() twice does not publish twice', async () => {
    await start(
      () => success(receipts.message(1)),
      {},
      {
        plugins: [{ name: 'p', aroundPublish: async (request, next) => (await next(request), next(request)) }],
        redelivery: { maxDeliveries: 1 },
      },
    );
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(1));
    expect((await world.read('receipts')).length).toBeLessThan(2);
  });
});

describe('a plugin around handling', () => {
  it('that calls next() after its run ended does not run the handler', async () => {
    // Settled already: a run now would be one without a settlement.
    let runs = 0;
    let late: () => void = () => undefined;
    const plugin = {
      name: 'p',
      aroundHandler: (_: Delivery, next: () => unknown) => {
        late = () =>
          void Promise.resolve()
            .then(next)
            .catch(() => undefined);
        return success();
      },
    };
    await start(() => (runs++, success()), {}, { plugins: [plugin] });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    late();
    await world.clock.advanceBy(0);
    expect(runs).toBe(0);
  });
});

describe('a time limit', () => {
  it('covers a schema that never resolves', async () => {
    const validate = (): Promise<never> => never();
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders', { payload: { '~standard': { version: 1, vendor: 'x', validate } } }),
          subscription: 's',
          concurrency: 1,
          timeoutMs: 1_000,
          redelivery: { maxDeliveries: 1 },
          handle: () => success(),
        }),
      ],
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(60));
    expect(runtime.health()[0]?.running).toBe(0);
  });

  it('of a call to the broker covers the schema of a follow-up that never resolves', async () => {
    // Otherwise the slot is gone for ever.
    const hanging = topic('receipts', {
      payload: { '~standard': { version: 1, vendor: 'x', validate: () => never() } },
    });
    const runtime = await start(() => success(hanging.message(1)), { concurrency: 1, timeoutMs: 1_000 });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(300));
    expect(runtime.health()[0]?.running).toBe(0);
  });
});

describe('a transport closed under the runtime', () => {
  it('is said: the subscription does not look as if it ran', async () => {
    // Nothing silent: no message will ever come again.
    const transport = embedded({ broker: world.broker });
    const runtime = await start(() => success(), {}, { transport });
    await transport.close();
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(60));
    const said = world.log.filter(({ level }) => level === 'warn' || level === 'error');
    expect({ state: runtime.health()[0]?.state, said: said.length > 0 }).not.toEqual({ state: 'running', said: false });
  });
});

describe('a request for redelivery that fails', () => {
  it('is said in the log', async () => {
    const transport = embeddedWith((inner) => ({
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        return Object.assign(Object.create(subscription) as typeof subscription, {
          receive: (signal: AbortSignal) => subscription.receive(signal),
          acknowledge: (ids: never) => subscription.acknowledge(ids),
          onState: (report: never) => subscription.onState(report),
          close: () => subscription.close(),
          redeliver: () => Promise.reject(new Error('no permission')),
        });
      },
    }));
    await start(() => retry(), {}, { transport });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(60));
    expect(world.log.filter(({ level }) => level === 'warn' || level === 'error')).not.toEqual([]);
  });
});
