// The strategy `republish`: long waits go to the retry letter topic and come back from it, attempt, due time and
// original properties carried along.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  ConfigurationError,
  TransportError,
  days,
  defer,
  defineHandler,
  fixedBackoff,
  hours,
  minutes,
  retry,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

const RETRY = 'persistent://public/default/jobs-workers-RETRY';

function handler(handle: (delivery: Delivery) => Outcome, more: Partial<HandlerOptions> = {}) {
  return defineHandler({
    name: 'worker',
    source: topic('jobs'),
    subscription: 'workers',
    retryTopic: true,
    redelivery: { maxDeliveries: 3, backoff: fixedBackoff(hours(1)) },
    ...more,
    handle,
  });
}

describe('a wait of an hour with a retry letter topic', () => {
  it('ends the copy at hand and comes back when due, with the attempt, the origin and the original properties', async () => {
    const world = new World();
    const seen: Pick<Delivery, 'attempt' | 'properties' | 'topic' | 'originId' | 'redeliveryCount'>[] = [];
    const at: number[] = [];
    await world.start({
      handlers: [
        handler(({ attempt, properties, topic: from, originId, redeliveryCount }) => {
          seen.push({ attempt, properties: { ...properties }, topic: from, originId, redeliveryCount });
          at.push(world.clock.now());
          return attempt < 3 ? retry('not yet') : success();
        }),
      ],
    });
    await world.publish('jobs', 'a', { properties: { tenant: 'acme' }, key: 'k' });
    await world.clock.advanceBy(hours(1) - 1);
    expect([at.length, world.backlog('jobs', 'workers')]).toEqual([1, 0]);

    await world.clock.advanceBy(hours(2) + seconds(10));

    const origin = { topic: 'persistent://public/default/jobs', properties: { tenant: 'acme' }, redeliveryCount: 0 };
    expect(seen).toEqual([1, 2, 3].map((attempt) => ({ attempt, originId: seen[0]?.originId, ...origin })));
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(hours(1));
    expect(world.backlog(RETRY, 'workers')).toBe(0);
    await world.end();
  });

  it('that fails to the end is one dead letter that names the origin', async () => {
    const world = new World();
    await world.start({ handlers: [handler(() => retry('never'))] });
    await world.publish('jobs', 'a', { properties: { tenant: 'acme' } });
    await world.clock.advanceBy(days(1));

    const letters = await world.deadLetters('jobs', 'workers');

    expect(letters.map(payloadOf)).toEqual(['a']);
    expect(letters[0]?.properties).toMatchObject({
      REAL_TOPIC: 'persistent://public/default/jobs',
      ORIGIN_MESSAGE_ID: '1:0:-1',
      'pulsework-attempt': '3',
      'pulsework-cause': 'redeliveries-exhausted',
      tenant: 'acme',
    });
    expect(letters[0]?.properties).not.toHaveProperty('RECONSUMETIMES');
    await world.end();
  });

  it('survives the process: another one goes on with the attempt', async () => {
    const world = new World();
    const attempts: number[] = [];
    const handlers = [handler(({ attempt }) => (attempts.push(attempt), retry()))];
    const first = await world.start({ handlers });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(seconds(1));
    await world.drain(first, 0);
    await world.start({ handlers });
    await world.clock.advanceBy(days(1));

    expect(attempts).toEqual([1, 2, 3]);
    await world.end();
  });

  it('is not longer for a copy that the broker delivers early: it is kept in place', async () => {
    const world = new World();
    const at: number[] = [];
    const handlers = [handler(({ attempt }) => (at.push(world.clock.now()), attempt === 1 ? retry() : success()))];
    const runtime = await world.start({ handlers });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(seconds(1));
    const [letter] = await world.read(RETRY);
    await world.drain(runtime, 0);
    // The same letter without a due time that the broker knows.
    await world.publish(RETRY, 'b', { properties: letter?.properties ?? {} });
    await world.start({ handlers });
    await world.clock.advanceBy(hours(1) - minutes(2));
    expect(at).toHaveLength(1);
    await world.clock.advanceBy(minutes(3));
    expect(at).toHaveLength(3);
    await world.end();
  });
});

describe('with a retry letter topic', () => {
  it('a short wait is held, a long defer is published without spending an attempt', async () => {
    const world = new World();
    const attempts: number[] = [];
    await world.start({
      handlers: [
        handler(({ attempt }) => {
          attempts.push(attempt);
          return [retryAfter(1_000), defer(hours(2)), success()][attempts.length - 1] ?? success();
        }),
      ],
    });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(hours(3));

    expect(attempts).toEqual([1, 2, 2]);
    expect(world.reports.map(({ strategy }) => strategy)).toEqual(['hold', 'republish', undefined]);
    await world.end();
  });

  it('delays beyond maxHeld are published instead of stopping the subscription', async () => {
    const world = new World();
    const runtime = await world.start({
      handlers: [handler(({ attempt }) => (attempt === 1 ? retryAfter(5_000) : success()), { maxHeld: 2 })],
    });
    for (const value of ['a', 'b', 'c', 'd']) await world.publish('jobs', value);
    await world.clock.advanceBy(1_000);

    expect(world.reports.map(({ strategy }) => strategy)).toEqual(['hold', 'hold', 'republish', 'republish']);
    await world.clock.advanceBy(60_000);
    expect(runtime.health()[0]).toMatchObject({ state: 'running', held: 0, kept: 0 });
    expect([world.backlog('jobs', 'workers'), world.backlog(RETRY, 'workers')]).toEqual([0, 0]);
    await world.end();
  });

  it('a letter that is refused for good leaves the message held, and it comes again', async () => {
    const world = new World();
    const inner = embedded({ broker: world.broker });
    const refused = new TransportError('MESSAGE_TOO_LARGE', 'too large', { retriable: false });
    const transport = transportWith(inner, {
      name: 'refusing',
      publisher: async (name) => {
        const publisher = await inner.publisher(name);
        return {
          topic: name,
          nextSequenceId: () => publisher.nextSequenceId(),
          publish: () => Promise.reject(refused),
          close: () => publisher.close(),
        };
      },
    });
    const attempts: number[] = [];
    const handle = ({ attempt }: Delivery): Outcome => (attempts.push(attempt), attempt < 3 ? retry() : success());
    await world.start({ handlers: [handler(handle)], transport });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(days(1));

    expect(attempts).toEqual([1, 2, 3]);
    expect(world.backlog('jobs', 'workers')).toBe(0);
    expect(world.log.filter(({ message }) => message === 'publishing the retry letter failed')).toHaveLength(2);
    await world.end();
  });

  it('a drain publishes what still has more than 10 s to wait, and gives the rest back', async () => {
    const world = new World();
    const handle = ({ payload }: Delivery): Outcome => defer(payload === 'long' ? 30_000 : 9_000);
    const runtime = await world.start({ handlers: [handler(handle)] });
    await world.publish('jobs', 'long');
    await world.publish('jobs', 'short');
    await world.clock.advanceBy(100);
    await world.drain(runtime);

    expect((await world.read(RETRY)).map(payloadOf)).toEqual(['long']);
    expect(world.backlog('jobs', 'workers')).toBe(1);
  });

  it.each([
    [{ type: 'exclusive' }, /"retryTopic" lets later messages pass/],
    [{ type: 'key-shared', ordering: 'key' }, /"retryTopic" lets later messages pass/],
    [{ retryTopic: '' }, /"retryTopic" must be a text that is not empty/],
    [{ retryTopic: 'jobs' }, /its retry letter topic persistent:\/\/public\/default\/jobs is one of its own topics/],
    [{ retryTopic: 'x', deadLetterTopic: 'x' }, /is its retry letter topic too/],
  ] as const)('%j is refused at start', async (options, reason) => {
    const world = new World();
    const starting = world.start({ handlers: [handler(() => success(), options)] });
    await expect(starting).rejects.toThrow(reason);
    await expect(starting).rejects.toBeInstanceOf(ConfigurationError);
  });
});
