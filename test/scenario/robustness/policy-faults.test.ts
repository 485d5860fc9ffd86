// Policies in plain JavaScript: backoffs and rules for refused dead letters that throw, hang or give nonsense.
import { describe, expect, it } from 'vitest';
import type { HandlerOptions, Transport } from '../../../src/index.js';
import {
  TransportError,
  defineHandler,
  explain,
  minutes,
  poison,
  retry,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';

const never = (): Promise<never> => new Promise(() => undefined);
const throws = (): never => {
  throw new Error('broken');
};
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe('a backoff that', () => {
  it.each<[string, () => unknown]>([
    ['throws', throws],
    ['gives NaN', () => NaN],
    ['gives less than 0', () => -5],
    ['gives a text', () => '100'],
    ['gives a bigint', () => 10n],
    ['gives nothing', () => undefined],
    ['gives a promise', () => Promise.resolve(5)],
    ['gives a promise that rejects', () => Promise.reject(new Error('broken'))],
    ['gives a list', () => [5]],
    ['gives a revoked proxy', revoked],
  ])(
    '%s is replaced by the default for that failure, by policy and by outcome, and explain says so',
    async (_, broken) => {
      const world = new World();
      const backoff = broken as () => number;
      const startMs = world.clock.now();
      const seen = { policy: [] as number[], outcome: [] as number[] };
      const redelivery = { maxDeliveries: 3, backoff };
      const unhandled = await unhandledDuring(async () => {
        const byPolicy = defineHandler({
          name: 'policy',
          source: topic('orders'),
          subscription: 'policy',
          redelivery,
          handle: () => (seen.policy.push(world.clock.now() - startMs), retry()),
        });
        const byOutcome = defineHandler({
          name: 'outcome',
          source: topic('orders'),
          subscription: 'outcome',
          redelivery: { maxDeliveries: 3 },
          handle: () => (seen.outcome.push(world.clock.now() - startMs), retry('x', { backoff })),
        });
        await world.start({ handlers: [byPolicy, byOutcome] });
        await world.publish('orders', 1);
        await world.clock.advanceBy(minutes(1));
        expect(
          explain([byPolicy]).handlers[0]?.waits.map(({ minMs, policyFailure }) => [minMs, typeof policyFailure]),
        ).toEqual([
          [1_000, 'string'],
          [2_000, 'string'],
        ]);
      });
      expect(unhandled).toEqual([]);
      expect(seen).toEqual({ policy: [0, 1_000, 3_000], outcome: [0, 1_000, 3_000] });
      expect([world.backlog('orders', 'policy'), world.backlog('orders', 'outcome')]).toEqual([0, 0]);
    },
  );
});

describe('a rule for refused dead letters that', () => {
  /** A broker that refuses every dead letter, and how often it was asked. */
  function refusing(world: World): { readonly transport: Transport; readonly tries: () => number } {
    let tries = 0;
    const inner = embedded({ broker: world.broker });
    const publisher: Transport['publisher'] = async (name, options) => {
      const opened = await inner.publisher(name, options);
      const refuse = (): Promise<never> => {
        tries += 1;
        return Promise.reject(new TransportError('TOPIC_TERMINATED', 'no more', { retriable: false }));
      };
      return name.endsWith('-DLQ')
        ? { topic: name, nextSequenceId: () => opened.nextSequenceId(), publish: refuse, close: () => opened.close() }
        : opened;
    };
    const { name, capabilities, maxMessageBytes } = inner;
    const subscribe: Transport['subscribe'] = (spec) => inner.subscribe(spec);
    const transport = { name, capabilities, maxMessageBytes, subscribe, publisher, close: () => inner.close() };
    return { transport, tries: () => tries };
  }

  it.each<[string, () => unknown]>([
    ['throws', throws],
    ['never returns', never],
    ['rejects', () => Promise.reject(new Error('broken'))],
    ['gives nothing', () => undefined],
    ['gives an unknown word', () => 'whatever'],
    ['names a topic that cannot be', () => ({ fallbackTopic: '://' })],
    ['names no text', () => ({ fallbackTopic: 5 })],
    ['gives a revoked proxy', revoked],
  ])('%s means hold: the message stays, the others go on, and a drain ends', async (_, rule) => {
    const world = new World();
    const { transport, tries } = refusing(world);
    const done: unknown[] = [];
    let drainedMs = Infinity;
    const unhandled = await unhandledDuring(async () => {
      const handler = defineHandler({
        name: 'h',
        source: topic('orders'),
        subscription: 's',
        concurrency: 1,
        onDeadLetterRefused: rule as HandlerOptions['onDeadLetterRefused'],
        handle: ({ payload }) => (payload === 'bad' ? poison('x') : (done.push(payload), success())),
      });
      const runtime = await world.start({ transport, handlers: [handler] });
      await world.publish('orders', 'bad');
      await world.publish('orders', 'good');
      await world.clock.advanceBy(minutes(60));
      expect(runtime.health()[0]?.state).toBe('degraded');
      const startMs = world.clock.now();
      void runtime.drain({ deadlineMs: seconds(5) }).then(() => (drainedMs = world.clock.now() - startMs));
      await world.clock.advanceBy(minutes(3));
    });
    expect(unhandled).toEqual([]);
    expect(done).toEqual(['good']);
    expect(world.backlog('orders', 's')).toBe(1);
    // After 10 s, then doubling up to 10 min.
    expect(tries()).toBeLessThanOrEqual(13);
    expect(drainedMs).toBeLessThanOrEqual(6_000);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});
