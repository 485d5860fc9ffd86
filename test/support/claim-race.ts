// Two real processes that race for the same idempotency keys.
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import type { StorePlace } from './store-places.js';
import { idempotencyStoreAt } from './store-places.js';
import type { StoreProcesses } from './store-processes.js';

/** Keys that nobody has claimed, and behind them as many whose lease has ended. */
const FREE_KEYS = 200;
const ALL_KEYS = 2 * FREE_KEYS;
/** Whoever has so many leaves the rest to the other: both get some, however slow one of them is. */
const ENOUGH = 300;

/** Which keys each of the two got. */
export async function raceForClaims(processes: StoreProcesses, place: StorePlace): Promise<readonly number[][]> {
  const store = idempotencyStoreAt(place);
  const late = Array.from({ length: FREE_KEYS }, (_, at) => `key ${FREE_KEYS + at}`);
  await Promise.all(late.map((key) => store.claim(key, 'died', { nowMs: 0, leaseMs: 0 })));
  const racers = await Promise.all(['one', 'other'].map((name) => racer(processes, place, name)));
  const results = racers.map(async ({ stdout }) => {
    if (stdout === null) throw new Error('it has no output');
    const [text] = (await once(stdout, 'data')) as [Buffer];
    return JSON.parse(text.toString()) as number[];
  });
  for (const { stdin } of racers) stdin?.write('go\n');
  return Promise.all(results);
}

/** Every key once. */
export const everyKey: readonly number[] = Array.from({ length: ALL_KEYS }, (_, number) => number);

function racer(processes: StoreProcesses, place: StorePlace, name: string): Promise<ChildProcess> {
  return processes.start('claiming-process.ts', JSON.stringify(place), name, String(ALL_KEYS), String(ENOUGH));
}
