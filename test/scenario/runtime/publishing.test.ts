import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { MessageOptions, Plugin, PublishRequest } from '../../../src/index.js';
import { defineHandler, retry, seconds, success, topic } from '../../../src/index.js';
import { World, payloadOf } from '../../support/runtime-world.js';

const orders = topic('orders', { payload: z.object({ id: z.string() }) });
const receipts = topic('receipts');
let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

const idle = () => defineHandler({ name: 'idle', source: topic('other'), subscription: 's', handle: () => success() });

describe('runtime.publisher', () => {
  it('publishes with all options and resolves with the receipt', async () => {
    const runtime = await world.start({ handlers: [idle()] });
    const id = await runtime.publisher(orders).publish(
      { id: 'ü' },
      {
        key: 'ключ',
        orderingKey: Uint8Array.of(1, 2),
        properties: { tenant: 'x', length: '3', ['__proto__']: 'odd' },
        eventTime: new Date(5),
        correlationId: 'c',
      },
    );
    expect(id).toMatchObject({ ledgerId: 1, entryId: 0, topic: 'persistent://public/default/orders' });
    const [message] = await world.read('orders');
    expect(payloadOf(message!)).toEqual({ id: 'ü' });
    expect(message).toMatchObject({ key: 'ключ', orderingKey: Uint8Array.of(1, 2), eventTimeMs: 5 });
    expect(Object.entries(message!.properties)).toEqual([
      ['tenant', 'x'],
      ['length', '3'],
      ['__proto__', 'odd'],
      ['pulsework-correlation-id', 'c'],
    ]);
    expect(({} as Record<string, unknown>)['odd']).toBeUndefined();
  });

  it.each<readonly [string, { id: string }, MessageOptions, RegExp]>([
    ['a payload that does not match', { id: 5 as never }, {}, /payload does not match its schema: id/],
    ['an unknown option', { id: 'a' }, { kee: 'x' } as MessageOptions, /unknown option "kee", did you mean "key"\?/],
    ['a key that is no text', { id: 'a' }, { key: null as never }, /"key" must be a text or bytes, got null/],
    ['an invalid date', { id: 'a' }, { eventTime: new Date(NaN) }, /"eventTime" must be a valid Date/],
    ['two delivery times', { id: 'a' }, { deliverAt: new Date(5), deliverAfterMs: 5 }, /not both/],
    ['a negative delay', { id: 'a' }, { deliverAfterMs: -1 }, /"deliverAfterMs" must be a duration/],
    ['a payload that is too large', { id: 'x'.repeat(6 * 1024 * 1024) }, {}, /was refused/],
  ])('refuses %s', async (_, payload, options, message) => {
    const runtime = await world.start({ handlers: [idle()] });
    await expect(runtime.publisher(orders).publish(payload, options)).rejects.toMatchObject({
      code: 'PUBLISH_REFUSED',
      message: expect.stringMatching(message),
    });
    expect(await world.read('orders')).toEqual([]);
  });

  it('delays on shared subscriptions: deliverAfterMs counts from the publish', async () => {
    const runs: number[] = [];
    const startMs = world.clock.now();
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: orders,
          subscription: 's',
          handle: () => (runs.push(world.clock.now() - startMs), success()),
        }),
      ],
    });
    await runtime.publisher(orders).publish({ id: 'a' }, { deliverAfterMs: 1_500 });
    await world.clock.advanceBy(1_499);
    expect(runs).toEqual([]);
    await world.clock.advanceBy(seconds(3));
    expect(runs).toHaveLength(1);
    expect(runs[0]).toBeGreaterThanOrEqual(1_500);
  });
});

describe('repeats', () => {
  it('carry the same message id, so that receivers can recognise them', async () => {
    let crashes = 2;
    const plugin: Plugin = {
      name: 'crash-after-publish',
      async aroundPublish(request, next) {
        await next(request);
        if (crashes-- > 0) throw new Error('crashed after the publish');
      },
    };
    await world.start({
      handlers: [
        defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success(receipts.message(1)) }),
      ],
      plugins: [plugin],
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(60));
    const ids = (await world.read('receipts')).map((message) => message.properties['pulsework-message-id']);
    expect(ids).toEqual(['1:0:-1/h/0', '1:0:-1/h/0', '1:0:-1/h/0']);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('plugins', () => {
  it('wrap handlers in their order, the first outermost', async () => {
    const calls: string[] = [];
    const plugin = (name: string, after?: string[]): Plugin => ({
      name,
      after,
      async aroundHandler(delivery, next) {
        calls.push(`${name} before ${delivery.handler}`);
        const outcome = await next();
        calls.push(`${name} after ${outcome.kind}`);
        return outcome;
      },
    });
    await world.start({
      handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() })],
      plugins: [plugin('inner', ['outer']), plugin('outer')],
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    expect(calls).toEqual(['outer before h', 'inner before h', 'inner after success', 'outer after success']);
  });

  it('that throw around a handler fail the run', async () => {
    let broken = true;
    await world.start({
      handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() })],
      plugins: [
        {
          name: 'p',
          aroundHandler: (_, next) => {
            if (broken) throw new Error('plugin');
            return next();
          },
        },
      ],
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(500);
    broken = false;
    await world.clock.advanceBy(seconds(2));
    expect(world.reports.map((report) => [report.outcome, report.attempt])).toEqual([
      ['retry', 1],
      ['success', 2],
    ]);
  });

  it('that call next twice fail the run instead of running the handler twice', async () => {
    let runs = 0;
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: orders,
          subscription: 's',
          redelivery: { maxDeliveries: 1 },
          handle: () => (runs++, success()),
        }),
      ],
      plugins: [
        {
          name: 'p',
          aroundHandler: async (_, next) => {
            await next();
            return next();
          },
        },
      ],
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    expect(runs).toBe(1);
    expect((await world.deadLetters('orders', 's'))[0]!.properties['pulsework-reason']).toContain(
      'next() of aroundHandler was called twice',
    );
  });

  it('see and may change what is published, dead letters excepted', async () => {
    const seen: string[] = [];
    const plugin: Plugin = {
      name: 'p',
      aroundPublish(request: PublishRequest, next) {
        seen.push(request.topic);
        return next({
          ...request,
          message: { ...request.message, properties: { ...request.message.properties, added: 'yes' } },
        });
      },
    };
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: orders,
          subscription: 's',
          redelivery: { maxDeliveries: 1 },
          handle: ({ payload }) => (payload.id === 'a' ? success(receipts.message(1)) : retry()),
        }),
      ],
      plugins: [plugin],
    });
    await world.publish('orders', { id: 'a' });
    await world.publish('orders', { id: 'b' });
    await world.clock.advanceBy(0);
    expect(seen).toEqual(['persistent://public/default/receipts']);
    expect((await world.read('receipts'))[0]!.properties['added']).toBe('yes');
    expect(await world.deadLetters('orders', 's')).toHaveLength(1);
  });

  it('observers that throw are contained and named', async () => {
    const failing = (): never => {
      throw new Error('observer');
    };
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: orders,
          subscription: 's',
          redelivery: { maxDeliveries: 1 },
          handle: () => retry(),
        }),
      ],
      plugins: [{ name: 'p', onSettled: failing, onDeadLettered: failing, onDrain: failing, onClose: failing }],
      telemetry: { onSettled: failing },
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    await world.drain(runtime);
    expect(world.backlog('orders', 's')).toBe(0);
    const hooks = world.log.filter((line) => line.message === 'plugin hook failed').map((line) => line.fields['hook']);
    expect(hooks).toEqual(['onSettled', 'onDeadLettered', 'onDrain', 'onClose']);
  });
});

describe('log lines', () => {
  it('one per settlement, with level by outcome and the facts to find the message', async () => {
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: orders,
          subscription: 's',
          redelivery: { maxDeliveries: 2 },
          handle: ({ payload }) => (payload.id === 'a' ? success() : retry('busy')),
        }),
      ],
    });
    await world.publish('orders', { id: 'a' });
    await world.publish('orders', { id: 'b' }, { properties: { secret: 'not for logs' } });
    await world.clock.advanceBy(seconds(5));
    const lines = world.log.filter((line) => line.message.startsWith('delivery'));
    expect(
      lines.map((line) => [
        line.level,
        line.fields['outcome'],
        line.fields['settlement'],
        line.fields['attempt'],
        line.fields['delayMs'],
      ]),
    ).toEqual([
      ['debug', 'success', 'acknowledge', 1, undefined],
      ['info', 'retry', 'redeliver', 1, 1_000],
      ['error', 'retry', 'dead-letter', 2, undefined],
    ]);
    expect(lines.at(-1)!.fields).toMatchObject({
      handler: 'h',
      topic: 'persistent://public/default/orders',
      messageId: '1:1:-1',
      reason: 'busy',
      durationMs: 0,
    });
    expect(JSON.stringify(world.log)).not.toContain('not for logs');
  });

  it('at error from the first time on where a follow-up is refused, which no repeat mends', async () => {
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('numbers'),
          subscription: 's',
          redelivery: { maxDeliveries: 2 },
          handle: ({ payload }) => success(orders.message({ id: payload as never })),
        }),
      ],
    });
    await world.publish('numbers', 5);
    await world.clock.advanceBy(seconds(5));
    const lines = world.log.filter((line) => line.message.startsWith('delivery'));

    expect(lines.map(({ level, fields }) => [level, fields['settlement'], fields['cause']])).toEqual([
      ['error', 'redeliver', undefined],
      ['error', 'dead-letter', 'publish-refused'],
    ]);
    expect(lines[0]?.fields['reason']).toContain('payload does not match its schema: id');
  });

  it('a logger that throws changes nothing', async () => {
    const failing = (): never => {
      throw new Error('disk full');
    };
    await world.start({
      handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() })],
      logger: { debug: failing, info: failing, warn: failing, error: failing },
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});
