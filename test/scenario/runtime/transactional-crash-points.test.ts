// Every call to the broker that transactional handlers make goes wrong once, in each way, on the embedded broker: of each
// message all results are there, once, or it was never done; none is lost, none is left behind.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HandlerOptions, Outcome } from '../../../src/index.js';
import { Runtime, defineHandler, fixedBackoff, minutes, poison, retry, success, topic } from '../../../src/index.js';
import type { Cut, Fault } from '../../../src/testing.js';
import { CrashWorld, FAULTS } from '../../../src/testing.js';
import { payloadOf } from '../../support/runtime-world.js';

const jobs = topic('jobs', { payload: z.object({ id: z.string() }) });
const results = topic('results');
const journal = topic('journal');
const both = (id: string): Outcome => success(results.message(id), journal.message(id), results.message(`${id} again`));

/** What each message's handler says, by id, for each attempt. */
const SCRIPT: Readonly<Record<string, (attempt: number) => Outcome>> = {
  first: () => both('first'),
  second: () => both('second'),
  flaky: (attempt) => (attempt < 2 ? retry() : both('flaky')),
  poison: () => poison('bad'),
};
const PRODUCING = ['first', 'flaky', 'second'];
const WHOLE = {
  results: PRODUCING.flatMap((id) => [id, `${id} again`]),
  journal: PRODUCING,
  letters: ['poison'],
  backlog: 0,
};

type Shape = 'single' | 'batch';

async function run(shape: Shape, options: HandlerOptions, cut: Cut) {
  const handler = defineHandler({
    ...{ name: 'worker', source: jobs, subscription: 'workers', publishes: [results, journal], transactional: true },
    redelivery: { maxDeliveries: 3, backoff: fixedBackoff(20) },
    ...options,
    handle: ({ payload, attempt }) => SCRIPT[payload.id]!(attempt),
  });
  const world = new CrashWorld(cut, (transport) =>
    Runtime.start({ transport, handlers: [handler], callTimeoutMs: 5_000, random: () => 0.5, logger: SILENT }),
  );
  await world.start();
  const values = Object.keys(SCRIPT).map((id) => ({ payload: Buffer.from(JSON.stringify({ id })), properties: {} }));
  const keyed = values.map((value) => ({ ...value, key: 'k' }));
  if (shape === 'batch') await world.broker.publishBatch('jobs', keyed);
  else for (const value of keyed) await world.broker.publish('jobs', value);
  await world.pass(minutes(2));
  const read = async (name: string): Promise<string[]> => (await world.read(name)).map(payloadOf) as string[];
  const letters = (await world.read('jobs-workers-DLQ')).map((letter) => (payloadOf(letter) as { id: string }).id);
  const [made, written] = [await read('results'), await read('journal')];
  const end = {
    results: made,
    journal: written,
    letters: [...new Set(letters)],
    backlog: world.backlog('jobs', 'workers'),
  };
  await world.drain(0);
  return { end, counted: world.calls, hit: world.hit };
}

const nothing = (): void => undefined;
const SILENT = { isEnabled: () => false, debug: nothing, info: nothing, warn: nothing, error: nothing };
const sorted = ({ results, journal, ...rest }: typeof WHOLE): typeof WHOLE => ({
  ...{ results: results.toSorted(), journal: journal.toSorted(), ...rest },
});

const SHAPES: readonly { readonly title: string; readonly shape: Shape; readonly options: HandlerOptions }[] = [
  { title: 'single messages on Shared', shape: 'single', options: { type: 'shared' } },
  { title: 'single messages on Exclusive', shape: 'single', options: { type: 'exclusive' } },
  { title: 'single messages of one key in order', shape: 'single', options: { type: 'key-shared', ordering: 'key' } },
  { title: 'a producer batch on Shared', shape: 'batch', options: { type: 'shared' } },
  { title: 'a producer batch on Failover', shape: 'batch', options: { type: 'failover', ordering: 'partition' } },
];

describe.each(SHAPES)('$title', ({ shape, options }) => {
  it('each result is there once when nothing goes wrong', async () => {
    const { end } = await run(shape, options, { at: 0, fault: 'throws' });
    expect(sorted(end)).toEqual(sorted(WHOLE));
  });

  it.each<Fault>(FAULTS)('all or nothing at any call: %s', { timeout: 60_000 }, async (fault) => {
    const { counted } = await run(shape, options, { at: 0, fault });
    expect(counted).toBeGreaterThan(20);
    // The first two are the question at start whether there are transactions: that fails the start, as it must.
    for (let at = 3; at <= counted; at++) {
      const { end, hit } = await run(shape, options, { at, fault });
      expect(sorted(end), `call ${at} (${hit ?? 'not reached'})`).toEqual(sorted(WHOLE));
    }
  });
});
