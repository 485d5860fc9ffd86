// Every call to the broker that a set of messages causes goes wrong once, in each way: no message may be lost,
// none acknowledged without having been handled, and nothing may stay behind.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import { defer, defineHandler, fixedBackoff, poison, retry, retryAfter, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import type { Fault } from '../../../src/testing.js';
import { FAULTS, FaultyTransport } from '../../../src/testing.js';
import { World, payloadOf } from '../../support/runtime-world.js';

const jobs = topic('jobs', { payload: z.object({ id: z.string() }) });
const results = topic('results', { payload: z.object({ of: z.string() }) });

/** What each message's handler says, by id, for each attempt. */
const SCRIPT: Readonly<Record<string, (attempt: number) => Outcome>> = {
  plain: () => success(),
  follow: () => success(results.message({ of: 'follow' }), results.message({ of: 'follow' })),
  flaky: (attempt) => (attempt < 2 ? retry() : success()),
  late: (attempt) => (attempt < 2 ? retryAfter(50) : success()),
  hopeless: () => retry('never works'),
  poison: () => poison('bad'),
};
const GOOD = ['plain', 'follow', 'flaky', 'late'];
const DEAD = ['hopeless', 'poison', 'undecodable'];

type Shape = 'single' | 'batch';

async function run(shape: Shape, options: HandlerOptions, at: number, fault: Fault) {
  const world = new World();
  const handled = new Set<string>();
  let deferred = false;
  let runtime: Runtime | undefined;
  const handler = defineHandler({
    name: 'worker',
    source: jobs,
    subscription: 'workers',
    redelivery: { maxDeliveries: 2, backoff: fixedBackoff(20) },
    ...options,
    handle: ({ payload, attempt }) => {
      if (payload.id === 'deferred' && !deferred) {
        deferred = true;
        return defer(30);
      }
      const outcome = (SCRIPT[payload.id] ?? SCRIPT['plain']!)(attempt);
      if (outcome.kind === 'success') handled.add(payload.id);
      return outcome;
    },
  });
  const start = (transport: FaultyTransport | ReturnType<typeof embedded>) =>
    world.start({ handlers: [handler], transport, callTimeoutMs: 10_000 });

  const inner = embedded({ broker: world.broker });
  const process = { gone: false };
  const onGone = (): void => {
    process.gone = true;
    // The process ends here: its connection drops, and nothing it still does reaches the broker.
    void inner.close();
  };
  const faulty = new FaultyTransport(inner, { at, fault, clock: world.clock, onGone });
  runtime = await start(faulty);
  const values = [...Object.keys(SCRIPT), 'deferred'].map((id) => ({ id })) as unknown[];
  values.push({ wrong: true });
  if (shape === 'batch') await world.publishBatch('jobs', values);
  else for (const value of values) await world.publish('jobs', value);
  await world.clock.advanceBy(60_000);
  if (process.gone) {
    runtime = await start(embedded({ broker: world.broker }));
    await world.clock.advanceBy(60_000);
  }

  const letters = await world.deadLetters('jobs', 'workers');
  const dead = new Set(letters.map((letter) => (payloadOf(letter) as { id?: string }).id ?? 'undecodable'));
  const backlog = world.backlog('jobs', 'workers');
  const follow = (await world.read('results')).length;
  await world.drain(runtime, 0);
  return { counted: faulty.counted, hit: faulty.hit, handled, dead, backlog, letters: letters.length, follow };
}

const SHAPES: readonly { readonly title: string; readonly shape: Shape; readonly options: HandlerOptions }[] = [
  { title: 'single messages on Shared', shape: 'single', options: { type: 'shared' } },
  { title: 'single messages on Exclusive', shape: 'single', options: { type: 'exclusive' } },
  {
    title: 'single messages on Key_Shared with ordering',
    shape: 'single',
    options: { type: 'key-shared', ordering: 'key' },
  },
  { title: 'a producer batch on Shared', shape: 'batch', options: { type: 'shared' } },
  { title: 'a producer batch on Failover', shape: 'batch', options: { type: 'failover', ordering: 'partition' } },
];

describe.each(SHAPES)('$title', ({ shape, options }) => {
  it('ends as the script says when nothing goes wrong', async () => {
    const { handled, dead, backlog, letters, follow } = await run(shape, options, 0, 'throws');
    expect([...handled].sort()).toEqual([...GOOD, 'deferred'].sort());
    expect([...dead].sort()).toEqual([...DEAD].sort());
    expect({ backlog, letters, follow }).toEqual({ backlog: 0, letters: 3, follow: 2 });
  });

  it.each(FAULTS)('loses nothing at any call: %s', async (fault) => {
    const { counted } = await run(shape, options, 0, fault);
    expect(counted).toBeGreaterThan(10);
    for (let at = 1; at <= counted; at++) {
      const result = await run(shape, options, at, fault);
      const where = `call ${at} (${result.hit ?? 'not reached'})`;
      expect([...result.handled].sort(), `${where}: handled`).toEqual([...GOOD, 'deferred'].sort());
      expect(
        [...DEAD].filter((id) => !result.dead.has(id)),
        `${where}: dead letters missing`,
      ).toEqual([]);
      expect(
        [...result.dead].filter((id) => !DEAD.includes(id)),
        `${where}: dead letters too many`,
      ).toEqual([]);
      expect(result.backlog, `${where}: left behind`).toBe(0);
      expect(result.follow, `${where}: follow-ups`).toBeGreaterThanOrEqual(2);
    }
  });
});
