// What each attempt of a step does besides its work, by chance but the same in each run of a program: some throw before or after
// it, some take longer than a lease, some obey the signal to end and some do not.
import { dependencyDown, poison, retryAfter, seconds } from '../../../src/index.js';
import type { Clock } from '../../../src/ports/clock.js';
import type { Command } from '../../../src/workflow/command.js';
import type { StepContext } from '../../../src/workflow/flow.js';
import { SeededValues } from '../../../src/workflow/seeded-values.js';
import type { Ledger } from './ledger.js';
import type { Setting } from './program.js';

const MOODS = [
  'throws',
  'throws-after-it',
  'asks-for-time',
  'is-down',
  'takes-long',
  'takes-long-and-is-deaf',
  'takes-long-after-it',
] as const;
/** Of attempts in a rough program. */
const SHARE_OF_MOODS = 0.4;
/** Fewer than any policy here allows: only what is to be refused gives up. */
const MAX_MOODY_ATTEMPTS = 2;
const LONGEST_MS = seconds(60);

export interface AttemptParts {
  readonly setting: Setting;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly isRefused: boolean;
  /** What undoes it gives up. */
  readonly isBroken: boolean;
}

export async function attemptOf(command: Command, context: StepContext, parts: AttemptParts): Promise<unknown> {
  const { ledger, clock, setting } = parts;
  const { idempotencyKey: key, attempt, signal } = context;
  const run = command.step?.run ?? (() => undefined);
  const work = (): unknown => ledger.within(key, () => run(context));
  if (command.kind === 'compensate' ? parts.isBroken : parts.isRefused) return poison('refused');
  const chance = new SeededValues(`${setting.seed}/${key}/${attempt}`);
  const next = (): number => chance.next(0) / 2 ** 32;
  if (setting.mood === 'calm' || attempt > MAX_MOODY_ATTEMPTS || next() > SHARE_OF_MOODS) return work();
  const longMs = Math.ceil(next() * LONGEST_MS);
  switch (MOODS[Math.floor(next() * MOODS.length)] as (typeof MOODS)[number]) {
    case 'throws':
      throw new Error('not now');
    case 'throws-after-it':
      await work();
      throw new Error('the answer was lost');
    case 'asks-for-time':
      return retryAfter(longMs);
    case 'is-down':
      return dependencyDown('the service');
    case 'takes-long':
      await pause(clock, longMs, signal);
      return work();
    case 'takes-long-and-is-deaf':
      await pause(clock, longMs, undefined);
      return work();
    case 'takes-long-after-it': {
      const done = await work();
      await pause(clock, longMs, signal);
      return done;
    }
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(ms, resolve);
    signal?.addEventListener('abort', () => {
      timer.cancel();
      reject(new Error('told to end'));
    });
  });
}
