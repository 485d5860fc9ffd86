// One key that fails for a minute among 1,000: the other keys must not notice. In virtual time, every other message starts
// and ends at the very moment at which it does when nothing fails, however the failed one waits.
import { afterEach, describe, expect, it } from 'vitest';
import { defineHandler, fixedBackoff, retry, seconds, success, topic } from '../../../src/index.js';
import type { OrderedNegativeAckMode, Outcome } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const KEYS = 1_000;
const FAILING = 'key-500';
const FAILS_FOR_MS = seconds(60);
const BACKOFF_MS = 777;
const CONCURRENCY = 16;
/** Of one test, which takes 3 s and on a busy machine 20. */
const LIMIT_MS = 60_000;

/** When messages come, and how long their runs take. */
interface Load {
  readonly rounds: number;
  /** Between two messages; the keys follow one another, a round has each once. 0: all of them at once. */
  readonly everyMs: number;
  readonly takesMs: number;
  /** Of a run of the failing key. Where the slots are full its runs must take no room: whether it fails would show in that alone. */
  readonly failingTakesMs: number;
}

/** About ten of the 16 slots are taken; the failing key takes one more now and then. */
const ARRIVING: Load = { rounds: 3, everyMs: 20, takesMs: 203, failingTakesMs: 203 };
const ALL_AT_ONCE: Load = { rounds: 3, everyMs: 0, takesMs: 10, failingTakesMs: 0 };

interface Run {
  readonly payload: string;
  readonly startMs: number;
  readonly endMs: number;
}

let worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds) await world.end();
  worlds = [];
});

/** All runs, from the first message to the empty backlog, in milliseconds since the start. */
async function runsOf(load: Load, mode: OrderedNegativeAckMode, failsForMs: number): Promise<readonly Run[]> {
  const world = new World();
  worlds.push(world);
  const { clock } = world;
  const beganMs = clock.now();
  const runs: Run[] = [];
  await world.start({
    handlers: [
      defineHandler({
        name: 'ledger',
        source: topic('accounts'),
        subscription: 's',
        ...{ type: 'key-shared', ordering: 'key', orderedNegativeAck: mode, concurrency: CONCURRENCY },
        redelivery: { maxDeliveries: 1_000, backoff: fixedBackoff(BACKOFF_MS) },
        handle: async ({ payload, key }): Promise<Outcome> => {
          const startMs = clock.now() - beganMs;
          const takesMs = key === FAILING ? load.failingTakesMs : load.takesMs;
          if (takesMs > 0) await new Promise<void>((ended) => clock.setTimer(takesMs, ended));
          const endMs = clock.now() - beganMs;
          runs.push({ payload: String(payload), startMs, endMs });
          return key === FAILING && endMs < failsForMs ? retry('not yet') : success();
        },
      }),
    ],
  });
  await publishAll(world, load);
  await clock.advanceUntil(() => world.backlog('accounts', 's') === 0, { stepMs: seconds(10) });
  return runs;
}

async function publishAll(world: World, { rounds, everyMs }: Load): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (let n = 0; n < KEYS; n++) {
      const key = `key-${n}`;
      await world.publish('accounts', `${key}:${round}`, { key });
      if (everyMs > 0) await world.clock.advanceBy(everyMs);
    }
  }
}

const isOfFailing = ({ payload }: Run): boolean => payload.startsWith(`${FAILING}:`);
const shown = (runs: readonly Run[]): readonly string[] =>
  runs.map(({ payload, startMs, endMs }) => `${payload} from ${startMs} to ${endMs}`);

describe.each([
  ['messages that come one after the other', ARRIVING],
  ['a backlog that fills all slots', ALL_AT_ONCE],
] as const)('one key of 1,000 fails for 60 s: %s', (_, load) => {
  it.each(['disabled', 'best-effort'] as const)(
    'the others start and end when they do without it, ordered negative acks %s',
    async (mode) => {
      const calm = await runsOf(load, mode, 0);
      const failing = await runsOf(load, mode, FAILS_FOR_MS);

      const others = (runs: readonly Run[]): readonly string[] => shown(runs.filter((run) => !isOfFailing(run)));
      expect(others(failing)).toEqual(others(calm));
      expect(others(calm)).toHaveLength(load.rounds * (KEYS - 1));
      const own = failing.filter(isOfFailing);
      expect(own.length).toBeGreaterThan(load.rounds + 40);
      // Its own order held all the time, and nothing of it came through before the minute was over.
      const firsts = [...new Set(own.map(({ payload }) => payload))];
      expect(own.map(({ payload }) => firsts.indexOf(payload))).toEqual(
        own.map(({ payload }) => firsts.indexOf(payload)).toSorted((a, b) => a - b),
      );
      expect(firsts).toHaveLength(load.rounds);
      expect(own.findIndex(({ payload }) => payload === firsts[1])).toBeGreaterThan(40);
    },
    LIMIT_MS,
  );
});
