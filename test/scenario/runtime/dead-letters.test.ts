// What becomes of messages that are given up: the subscription that keeps their dead letters, letters that are
// refused for good, and handlers that chose to have none.
import { describe, expect, it } from 'vitest';
import type { DeadLetterRefusal, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  ConfigurationError,
  TransportError,
  defineHandler,
  poison,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World, payloadOf } from '../../support/runtime-world.js';
import { transportWith } from '../../support/transport-with.js';

const DLQ = 'persistent://public/default/jobs-workers-DLQ';

function handler(handle: (payload: unknown) => Outcome, more: Partial<HandlerOptions> = {}) {
  return defineHandler({
    name: 'worker',
    source: topic('jobs'),
    subscription: 'workers',
    ...more,
    handle: ({ payload }) => handle(payload),
  });
}

/** Refuses for good what is published to `refusing`, and counts the producers that were opened. */
function refusingTransport(world: World, refusing: string) {
  const inner = embedded({ broker: world.broker });
  const opened: string[] = [];
  const refusal = new TransportError('MESSAGE_TOO_LARGE', 'too large', { retriable: false });
  const transport = transportWith(inner, {
    name: 'refusing',
    publisher: async (name, options) => {
      opened.push(name);
      const publisher = await inner.publisher(name, options);
      return {
        topic: name,
        nextSequenceId: () => publisher.nextSequenceId(),
        publish: (message, id) => (name === refusing ? Promise.reject(refusal) : publisher.publish(message, id)),
        close: () => publisher.close(),
      };
    },
  });
  return { transport, opened };
}

describe('a dead letter', () => {
  // D-19: without an initial subscription a dead letter may be deleted before anyone subscribes.
  it("D-19: is kept for a subscription named like the handler's, from the first one on", async () => {
    const world = new World();
    await world.start({ handlers: [handler(() => poison('bad'))] });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(10);

    expect(world.backlog(DLQ, 'workers')).toBe(1);
    await world.end();
  });

  it.each([
    ['keepers', ['keepers']],
    [false, []],
  ] as const)('with deadLetterSubscription %j is kept for %j', async (deadLetterSubscription, kept) => {
    const world = new World();
    await world.start({ handlers: [handler(() => poison('bad'), { deadLetterSubscription })] });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(10);

    expect([...world.broker.stats(DLQ).subscriptions.keys()]).toEqual(kept);
    await world.end();
  });
});

describe('a dead letter that is refused for good', () => {
  it('keeps its message, tells health why, and goes on with one producer (G-06)', async () => {
    const world = new World();
    const { transport, opened } = refusingTransport(world, DLQ);
    const runtime = await world.start({
      handlers: [handler((payload) => (payload === 'good' ? success() : poison('bad')))],
      transport,
    });
    for (const value of ['a', 'b', 'good']) await world.publish('jobs', value);
    await world.clock.advanceBy(seconds(100));

    expect(world.backlog('jobs', 'workers')).toBe(2);
    expect(runtime.health()[0]).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('too large') as string,
    });
    expect(opened).toEqual([DLQ]);
    await world.end();
  });

  it('goes to the fallback topic where one is named', async () => {
    const world = new World();
    const { transport } = refusingTransport(world, DLQ);
    const onDeadLetterRefused = { fallbackTopic: 'last-resort' };
    await world.start({ handlers: [handler(() => poison('bad'), { onDeadLetterRefused })], transport });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(10);

    expect((await world.read('last-resort')).map(payloadOf)).toEqual(['a']);
    expect(world.backlog('jobs', 'workers')).toBe(0);
    await world.end();
  });

  it('is shown to a function, which may say that it dealt with it', async () => {
    const world = new World();
    const { transport } = refusingTransport(world, DLQ);
    const refusals: DeadLetterRefusal[] = [];
    const onDeadLetterRefused = (refusal: DeadLetterRefusal) => (refusals.push(refusal), 'acknowledge' as const);
    await world.start({ handlers: [handler(() => poison('bad'), { onDeadLetterRefused })], transport });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(10);

    expect(refusals).toMatchObject([{ topic: DLQ, cause: 'poison', originId: '1:0:-1' }]);
    expect(world.backlog('jobs', 'workers')).toBe(0);
    await world.end();
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['never ends', () => new Promise<never>(() => undefined)],
    ['names a topic that refuses too', () => ({ fallbackTopic: DLQ })],
  ])('is kept when the function %s', async (_, onDeadLetterRefused) => {
    const world = new World();
    const { transport } = refusingTransport(world, DLQ);
    await world.start({ handlers: [handler(() => poison('bad'), { onDeadLetterRefused })], transport });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(seconds(100));

    expect(world.backlog('jobs', 'workers')).toBe(1);
    expect(world.log.filter(({ message }) => message.includes('did not help'))).not.toHaveLength(0);
    await world.end();
  });
});

describe('a handler without dead letters', () => {
  it('that skips acknowledges what is given up, loudly', async () => {
    const world = new World();
    await world.start({ handlers: [handler(() => poison('bad'), { deadLetter: 'skip' })] });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(10);

    expect(world.backlog('jobs', 'workers')).toBe(0);
    expect(world.reports).toMatchObject([{ settlement: 'skip', cause: 'poison' }]);
    expect(world.log.find(({ level }) => level === 'error')?.message).toBe(
      'delivery given up and acknowledged without a dead letter',
    );
    await world.end();
  });

  it('that blocks keeps it, says so in health, and it comes again after a restart', async () => {
    const world = new World();
    const attempts: unknown[] = [];
    const policy = { redelivery: { maxDeliveries: 2 }, deadLetter: 'block' } as const;
    const handlers = [handler((payload) => (attempts.push(payload), retryAfter(5)), policy)];
    const runtime = await world.start({ handlers });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(seconds(3_600));

    expect(attempts).toHaveLength(2);
    expect(world.backlog('jobs', 'workers')).toBe(1);
    expect(runtime.health()[0]).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('given up and waiting for a person: 1') as string,
    });
    await world.drain(runtime);
    await world.start({ handlers });
    await world.clock.advanceBy(10);
    expect(attempts.length).toBeGreaterThan(2);
    await world.end();
  });

  it('that blocks under ordering lets nothing of the key pass, and other keys go on', async () => {
    const world = new World();
    const seen: unknown[] = [];
    const options = { type: 'key-shared', ordering: 'key', onDeadLetter: 'block-key' } as const;
    await world.start({
      handlers: [handler((payload) => (seen.push(payload), payload === 'bad' ? poison('x') : success()), options)],
    });
    await world.publish('jobs', 'bad', { key: 'k' });
    await world.publish('jobs', 'behind', { key: 'k' });
    await world.publish('jobs', 'other', { key: 'o' });
    await world.clock.advanceBy(seconds(3_600));

    expect(seen).toEqual(['bad', 'other']);
    await world.end();
  });

  it.each([
    [{ deadLetter: false }, /"deadLetter" must be one of publish, block, skip/],
    [{ deadLetterSubscription: '' }, /"deadLetterSubscription" must be a text that is not empty/],
    [{ onDeadLetterRefused: 'drop' }, /"onDeadLetterRefused" must be "hold", \{ fallbackTopic \} or a function/],
    [{ onDeadLetterRefused: { fallbackTopic: 'a/b' } }, /topic name "a\/b" is not valid/],
  ])('%j is refused at start', async (options, reason) => {
    const world = new World();
    const starting = world.start({ handlers: [handler(() => success(), options as Partial<HandlerOptions>)] });
    await expect(starting).rejects.toThrow(reason);
    await expect(starting).rejects.toBeInstanceOf(ConfigurationError);
  });
});
