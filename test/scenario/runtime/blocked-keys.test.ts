// `onDeadLetter: 'block-key'`: a key whose message was given up waits for a person, who releases it or skips it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import { defineHandler, minutes, poison, retryAfter, seconds, success, topic } from '../../../src/index.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { World, payloadOf } from '../../support/runtime-world.js';

const TOPIC = 'persistent://public/default/accounts';

let world: World;
let runs: string[];
let broken: boolean;
beforeEach(() => {
  world = new World();
  runs = [];
  broken = true;
});
afterEach(() => world.end());

async function start(options: HandlerOptions = {}, more: object = {}): Promise<Runtime> {
  const handle = ({ payload, attempt }: Delivery): Outcome => {
    runs.push(`${String(payload)}#${attempt}`);
    return payload === 'a1' && broken ? retryAfter(seconds(1)) : success();
  };
  return world.start({
    handlers: [
      defineHandler({
        name: 'ledger',
        source: topic('accounts'),
        subscription: 's',
        type: 'key-shared',
        ordering: 'key',
        onDeadLetter: 'block-key',
        redelivery: { maxDeliveries: 2 },
        ...options,
        handle,
      }),
    ],
    ...more,
  });
}

async function publish(...payloads: readonly string[]): Promise<void> {
  for (const payload of payloads) await world.publish('accounts', payload, { key: payload[0] });
}

/** Started, and `a1` given up: `a2` and `a3` wait behind it. */
async function blocked(options: HandlerOptions = {}, more: object = {}) {
  const runtime = await start(options, more);
  await publish('a1', 'a2', 'b1', 'a3');
  await world.clock.advanceBy(seconds(10));
  return { runtime, subscription: runtime.subscription('s', 'accounts') };
}

it('a message without a key blocks none: it is given up as deadLetter says', async () => {
  const runtime = await start();
  await world.publish('accounts', 'a1');
  await world.clock.advanceBy(seconds(10));
  expect(runs).toEqual(['a1#1', 'a1#2']);
  expect(runtime.health()[0]).toMatchObject({ state: 'running', blocked: 0 });
  expect((await world.deadLetters('accounts', 's')).map(payloadOf)).toEqual(['a1']);
});

describe.each(['disabled', 'best-effort'] as const)(
  'a key whose message was given up, ordered negative acks %s',
  (orderedNegativeAck) => {
    it('waits, and is listed with its reason; other keys go on', async () => {
      const { runtime, subscription } = await blocked({ orderedNegativeAck });
      expect(runs).toEqual(['a1#1', 'b1#1', 'a1#2']);
      expect(subscription.blockedKeys()).toEqual([
        {
          key: 'a',
          topic: TOPIC,
          messageId: expect.stringMatching(/^\d+:0:-1$/) as string,
          cause: 'redeliveries-exhausted',
          reason: 'retry requested',
          waiting: orderedNegativeAck === 'disabled' ? 2 : 0,
        },
      ]);
      expect(runtime.health()[0]).toMatchObject({
        state: 'degraded',
        reason: 'given up and waiting for a person: 1',
        blocked: 1,
      });
      expect(await world.deadLetters('accounts', 's')).toEqual([]);
    });

    it('runs again with fresh attempts once it is released, and its key after it', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      runs.length = 0;
      broken = false;
      expect(subscription.release('a')).toBe(true);
      await world.clock.advanceBy(seconds(1));
      expect(runs).toEqual(['a1#1', 'a2#1', 'a3#1']);
      expect(subscription.blockedKeys()).toEqual([]);
      expect(world.backlog('accounts', 's')).toBe(0);
    });

    it('that is released and fails again is given up after as many deliveries as before', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      runs.length = 0;
      subscription.release('a');
      await world.clock.advanceBy(seconds(10));
      expect(runs).toEqual(['a1#1', 'a1#2']);
      expect(subscription.blockedKeys()).toMatchObject([{ key: 'a' }]);
    });

    it('goes on once it is skipped, with the dead letter that it would have had', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      runs.length = 0;
      expect(subscription.skip('a')).toBe(true);
      await world.clock.advanceBy(seconds(1));
      expect(runs).toEqual(['a2#1', 'a3#1']);
      const [letter, ...others] = await world.deadLetters('accounts', 's');
      expect(others).toEqual([]);
      expect(letter === undefined ? undefined : payloadOf(letter)).toBe('a1');
      expect(letter?.properties).toMatchObject({
        'pulsework-cause': 'redeliveries-exhausted',
        'pulsework-attempt': '2',
      });
      expect(world.backlog('accounts', 's')).toBe(0);
    });

    it('that is skipped where nobody wants dead letters is acknowledged', async () => {
      const { subscription } = await blocked({ orderedNegativeAck, deadLetter: 'skip' });
      subscription.skip('a');
      await world.clock.advanceBy(seconds(1));
      expect(await world.deadLetters('accounts', 's')).toEqual([]);
      expect(world.backlog('accounts', 's')).toBe(0);
    });

    it('is given up in the same way where it is poison', async () => {
      const runtime = await world.start({
        handlers: [
          defineHandler({
            name: 'ledger',
            source: topic('accounts'),
            subscription: 's',
            type: 'failover',
            ordering: 'partition',
            onDeadLetter: 'block-key',
            handle: ({ payload }) => (payload === 'a1' ? poison('no such account') : success()),
          }),
        ],
      });
      await publish('a1', 'b1');
      await world.clock.advanceBy(seconds(2));
      const subscription = runtime.subscription('s', 'accounts');
      expect(subscription.blockedKeys()).toMatchObject([
        { key: TOPIC, cause: 'poison', reason: 'no such account', waiting: 1 },
      ]);
      expect(subscription.skip(TOPIC)).toBe(true);
      await world.clock.advanceBy(seconds(2));
      expect(world.backlog('accounts', 's')).toBe(0);
    });

    it('is known by its bytes too', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      expect(subscription.release(Buffer.from('a'))).toBe(true);
    });

    it('of a key that is not blocked nothing is done', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      expect([subscription.release('b'), subscription.skip('nobody'), subscription.skip('b')]).toEqual([
        false,
        false,
        false,
      ]);
      subscription.skip('a');
      expect(subscription.skip('a')).toBe(false);
    });

    it('goes on in its order, whatever came before it was blocked and was not looked at yet', async () => {
      const after = (ms: number): Promise<void> => new Promise((done) => void world.clock.setTimer(ms, done));
      const handle = async ({ payload }: Delivery): Promise<Outcome> => {
        runs.push(String(payload));
        // a1 is given up while a2 waits behind it; b1 and c1 leave a3 in the client until a1 is skipped.
        if (payload === 'a1') await after(10);
        if (payload === 'b1' || payload === 'c1') await after(100);
        return payload === 'a1' ? poison('no such account') : success();
      };
      const runtime = await world.start({
        handlers: [
          defineHandler({
            ...{ name: 'ledger', source: topic('accounts'), subscription: 's', type: 'key-shared', ordering: 'key' },
            ...{ onDeadLetter: 'block-key', orderedNegativeAck, concurrency: 2, handle },
          }),
        ],
      });
      await publish('a1', 'a2', 'b1', 'c1', 'a3');
      await world.clock.advanceBy(50);
      expect(runtime.subscription('s', 'accounts').skip('a')).toBe(true);
      await world.clock.advanceBy(seconds(1));
      expect(runs.filter((run) => run.startsWith('a'))).toEqual(['a1', 'a2', 'a3']);
      expect(world.backlog('accounts', 's')).toBe(0);
    });

    it('is not known by what is no key', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      for (const wrong of [undefined, null, 7, {}] as never[]) {
        expect(() => subscription.release(wrong)).toThrow(/"key" must be a text or bytes \(Uint8Array\), got /);
        expect(() => subscription.skip(wrong)).toThrow(/"key" must be a text or bytes \(Uint8Array\), got /);
      }
      expect(subscription.blockedKeys()).toMatchObject([{ key: 'a' }]);
    });

    it('stays blocked over a lost connection, without another run', async () => {
      const { subscription } = await blocked({ orderedNegativeAck });
      runs.length = 0;
      world.broker.unload(TOPIC);
      await world.clock.advanceBy(minutes(1));
      expect(runs).toEqual([]);
      expect(subscription.blockedKeys()).toMatchObject([{ key: 'a', cause: 'redeliveries-exhausted' }]);
      subscription.skip('a');
      await world.clock.advanceBy(seconds(1));
      expect(runs).toEqual(['a2#1', 'a3#1']);
    });

    it('with attempts on record begins anew there too', async () => {
      const store = memoryAttemptStore();
      const { subscription } = await blocked({ orderedNegativeAck }, { attemptStore: store });
      runs.length = 0;
      subscription.release('a');
      await world.clock.advanceBy(seconds(10));
      expect(runs).toEqual(['a1#1', 'a1#2']);
      subscription.skip('a');
      await world.clock.advanceBy(seconds(10));
      expect(world.backlog('accounts', 's')).toBe(0);
      expect(await world.deadLetters('accounts', 's')).toHaveLength(1);
    });

    it('comes again after a restart, with its key behind it', async () => {
      const { runtime } = await blocked({ orderedNegativeAck });
      await world.drain(runtime);
      runs.length = 0;
      broken = false;
      await start({ orderedNegativeAck });
      await world.clock.advanceBy(seconds(1));
      expect(runs.map((run) => run.slice(0, 2))).toEqual(['a1', 'a2', 'a3']);
    });
  },
);

describe('the key with too many messages behind its head', () => {
  it('is named in health', async () => {
    const { runtime } = await blocked({ maxLaneMessages: 2, orderedNegativeAck: 'disabled' });
    expect(runtime.health()[0]).toMatchObject({ pausedBy: ['lane-full'], fullKey: 'a' });
    runtime.subscription('s', 'accounts').skip('a');
    await world.clock.advanceBy(seconds(1));
    expect(runtime.health()[0]).toMatchObject({ pausedBy: [], fullKey: undefined });
  });
});

describe('a key that waits for a person where the broker keeps its order', () => {
  it('does not fill up, however it was given up and over a lost connection: other keys go on', async () => {
    const seen: string[] = [];
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'ledger',
          source: topic('accounts'),
          subscription: 's',
          type: 'key-shared',
          ordering: 'key',
          onDeadLetter: 'block-key',
          maxLaneMessages: 2,
          handle: ({ payload }) => {
            seen.push(String(payload));
            return payload === 'a1' ? poison('bad') : success();
          },
        }),
      ],
    });
    const subscription = runtime.subscription('s', 'accounts');
    await publish('a1', 'a2', 'a3', 'a4', 'a5', 'b1');
    await world.clock.advanceBy(seconds(1));
    expect(seen).toEqual(['a1', 'b1']);
    expect(runtime.health()[0]).toMatchObject({ pausedBy: [], waitingKeys: 0, blocked: 1 });
    world.broker.unload(TOPIC);
    await publish('a6', 'b2');
    await world.clock.advanceBy(seconds(1));
    expect(seen).toEqual(['a1', 'b1', 'b2']);
    expect(runtime.health()[0]).toMatchObject({ pausedBy: [], waitingKeys: 0, blocked: 1 });
    subscription.skip('a');
    await world.clock.advanceBy(seconds(1));
    expect(seen.slice(3)).toEqual(['a2', 'a3', 'a4', 'a5', 'a6']);
    expect(world.backlog('accounts', 's')).toBe(0);
  });
});

describe('is refused at start', () => {
  it.each([
    [{ ordering: 'none' }, /"onDeadLetter: block-key" keeps a key waiting, which needs "ordering"/],
    [
      { deadLetter: 'block' },
      /"deadLetter: block" has no way to go on under "ordering"; use "onDeadLetter: block-key"/,
    ],
    [{ onDeadLetter: 'block' }, /"onDeadLetter" must be one of continue, block-key/],
    [
      { type: 'failover', ordering: 'partition', orderedNegativeAck: 'required' },
      /"orderedNegativeAck" is for type "key-shared"/,
    ],
    [{ orderedNegativeAck: 'always' }, /"orderedNegativeAck" must be one of disabled, best-effort, required/],
  ])('%j', async (options, reason) => {
    await expect(start(options as HandlerOptions)).rejects.toThrow(reason);
  });
});
