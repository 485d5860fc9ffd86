// What explain() says beforehand is what happens: the schedule of a message that always fails, to the millisecond, and
// what is left of it after the process has died.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import { defineHandler, explain, fixedBackoff, hours, minutes, retry, seconds, topic } from '../../../src/index.js';
import { AttemptMemory, memoryAttemptStore } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';

const jobs = { name: 'worker', source: topic('jobs'), subscription: 'workers' };

describe('what explain says of a message that always fails is what happens', () => {
  it.each([
    ['hold', {}],
    ['local', { type: 'exclusive' }],
    ['hold', { type: 'key-shared', ordering: 'key' }],
    ['local', { type: 'key-shared', ordering: 'key', orderedNegativeAck: 'disabled' }],
    ['republish', { retryTopic: true, redelivery: { maxDeliveries: 4, backoff: fixedBackoff(hours(1)) } }],
    ['republish', { retryTopic: true, type: 'key-shared', redelivery: { backoff: fixedBackoff(minutes(2)) } }],
    ['hold', { redelivery: { maxDeliveries: 3, backoff: () => Promise.reject(new Error('no number')) as never } }],
  ] as const)('%s, %j', async (strategy, options) => {
    const world = new World();
    const startedMs: number[] = [];
    const handle = (): Outcome => (startedMs.push(world.clock.now()), retry('never'));
    const handler = defineHandler({ ...jobs, ...options, handle });
    const runtime = await world.start({ handlers: [handler] });
    const [told] = explain(runtime).handlers;
    await world.publish('jobs', 'a', { key: 'k' });
    await world.clock.advanceBy(hours(24));

    const waited = startedMs.slice(1).map((atMs, i) => atMs - (startedMs[i] ?? 0));
    expect(told?.waits.map(({ strategies }) => strategies)).toEqual(waited.map(() => [strategy]));
    expect(waited).toEqual(told?.waits.map(({ maxMs }) => maxMs));
    expect(waited).toEqual(told?.waits.map(({ minMs }) => minMs));
    const [letter, ...others] = await world.deadLetters('jobs', 'workers');
    expect(others).toEqual([]);
    expect(letter?.publishTimeMs).toBe((startedMs[0] ?? 0) + (told?.worstCaseMs ?? NaN));
    expect(world.reports.map((report) => report.strategy)).toEqual([...waited.map(() => strategy), undefined]);
    await world.end();
  });

  it('with time limits too, when every run ends only by being given up', async () => {
    const world = new World();
    const runtime = await world.start({
      handlers: [
        defineHandler({
          ...jobs,
          timeoutMs: seconds(10),
          abandonAfterMs: seconds(3),
          redelivery: { maxDeliveries: 3, backoff: fixedBackoff(500) },
          handle: () => new Promise<never>(() => undefined),
        }),
      ],
    });
    const startMs = world.clock.now();
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(hours(1));

    const [letter] = await world.deadLetters('jobs', 'workers');
    expect((letter?.publishTimeMs ?? 0) - startMs).toBe(40_000);
    expect(explain(runtime).handlers[0]?.worstCaseMs).toBe(40_000);
    await world.end();
  });

  it('with batches too, when each is collected as long as it may', async () => {
    const world = new World();
    const redelivery = { maxDeliveries: 3, backoff: fixedBackoff(500) };
    const batch = { maxMessages: 5, maxWaitMs: 200 };
    const handler = defineHandler({ ...jobs, batch, redelivery, handle: () => retry('never') });
    const runtime = await world.start({ handlers: [handler] });
    const startMs = world.clock.now();
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(hours(1));

    const [letter] = await world.deadLetters('jobs', 'workers');
    expect((letter?.publishTimeMs ?? 0) - startMs).toBe(1_600);
    expect(explain(runtime).handlers[0]?.worstCaseMs).toBe(1_600);
    await world.end();
  });
});

describe('what explain says of a process that dies while a message waits after its second failure is what happens', () => {
  it.each([
    ['held, and the last consumer is gone', {}, { attempt: 1, waitsMs: 0 }],
    ['kept in place', { type: 'exclusive' }, { attempt: 1, waitsMs: 0 }],
    ['kept in place, ordered', { type: 'key-shared', ordering: 'key' }, { attempt: 1, waitsMs: 0 }],
    ['in the retry letter topic', { retryTopic: true }, { attempt: 3, waitsMs: minutes(10) }],
    ['held, with an attempt store', { records: true }, { attempt: 3, waitsMs: minutes(10) }],
  ] as const)(
    '%s',
    async (_, { records = false, ...options }: Partial<HandlerOptions> & { records?: boolean }, next) => {
      const world = new World();
      const runs: { readonly attempt: number; readonly atMs: number }[] = [];
      const memory = new AttemptMemory();
      const start = (): Promise<Runtime> => {
        const redelivery = { maxDeliveries: 5, backoff: fixedBackoff(minutes(20)) };
        const handle = ({ attempt }: Delivery): Outcome => (runs.push({ attempt, atMs: world.clock.now() }), retry());
        const handler = defineHandler({ ...jobs, ...options, redelivery, handle });
        return world.start({ handlers: [handler], attemptStore: records ? memoryAttemptStore({ memory }) : undefined });
      };
      const first = await start();
      await world.publish('jobs', 'a', { key: 'k' });
      await world.clock.advanceBy(minutes(20));
      expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2]);
      // What a death leaves at the broker: everything unsettled goes back, uncounted.
      const closing = first.close();
      await world.clock.advanceBy(minutes(10));
      await closing;
      const restartMs = world.clock.now();
      await start();
      await world.clock.advanceBy(minutes(15));

      expect(runs[2]?.attempt).toBe(next.attempt);
      expect((runs[2]?.atMs ?? 0) - restartMs).toBe(next.waitsMs);
      await world.end();
    },
  );
});
