// A message that ends the process of its handler, on a real broker: with an AttemptStore it becomes a dead letter while all
// others are handled; without one it comes again without end, as docs/guarantees.md says.
import { expect } from 'vitest';
import { serviceFacts, serviceViolations } from '../support/crash/service-checks.js';
import type { Job } from '../support/crash/service-jobs.js';
import { ServiceWorld } from '../support/crash/service-world.js';
import { test } from '../support/real-pulsar/integration-test.js';

const MAX_DELIVERIES = 2;
/** Each start of a process takes seconds on a busy machine. */
const LIMIT_MS = 240_000;

/** In flight beside the killer when it kills for the first time: they take longer than it. */
function jobsAround(kind: string): readonly Job[] {
  const neighbours = Array.from({ length: 9 }, (_, n) => ({ id: `neighbour-${n}`, kind: 'plain', takesMs: 300 }));
  return [...neighbours.slice(0, 4), { id: 'killer', kind, takesMs: 20 }, ...neighbours.slice(4)];
}

for (const { kind, how, death } of [
  { kind: 'exits', how: 'calls process.exit', death: { exit: 13, errors: '' } },
  {
    kind: 'exhausts',
    how: 'exhausts memory',
    death: { exit: 'SIGABRT', errors: expect.stringContaining('heap out of memory') as string },
  },
]) {
  test.concurrent(
    `a payload that ${how} is a dead letter after maxDeliveries + 1 deaths at most; its neighbours are handled`,
    { timeout: LIMIT_MS },
    async ({ pulsar, onTestFinished }) => {
      const jobs = jobsAround(kind);
      const world = await ServiceWorld.prepare(pulsar, jobs);
      onTestFinished(() => world.end());
      const settings = world.settings({ maxDeliveries: MAX_DELIVERIES, attempts: world.attemptsPath });
      let life = await world.live(settings);
      while (life.exit !== 0 && world.deaths <= MAX_DELIVERIES + 1) life = await world.live(settings);

      const facts = await serviceFacts(world.place, jobs, world.told);
      expect(serviceViolations(jobs, facts)).toEqual([]);
      expect(facts.letters.map(({ properties }) => properties)).toEqual([
        expect.objectContaining({ id: 'killer', 'pulsework-cause': 'process-died', 'pulsework-attempt': '2' }),
      ]);
      // The first death only makes suspects; the life after the last one settles without a run.
      expect(world.lives.slice(0, -1)).toEqual(new Array(MAX_DELIVERIES + 1).fill(expect.objectContaining(death)));
      expect(life.exit).toBe(0);
    },
  );
}

test.concurrent(
  'without an AttemptStore such a payload comes again as attempt 1, however often it killed its process',
  { timeout: LIMIT_MS },
  async ({ pulsar, onTestFinished }) => {
    const jobs = [{ id: 'killer', kind: 'exits', takesMs: 0 }];
    const world = await ServiceWorld.prepare(pulsar, jobs);
    onTestFinished(() => world.end());
    const settings = world.settings({ maxDeliveries: MAX_DELIVERIES });
    for (let lives = 0; lives < MAX_DELIVERIES + 2; lives++) await world.live(settings);

    const killed = { told: ['ready', 'run killer 1'], exit: 13 };
    expect(world.lives.map(({ told, exit }) => ({ told: [...told].sort(), exit }))).toEqual([
      killed,
      killed,
      killed,
      killed,
    ]);
    expect(await world.place.backlog()).toBe(1);
  },
);
