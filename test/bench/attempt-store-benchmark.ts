// What an attempt store in a file costs per delivery: begin, end and delete, one after the other by each of those in
// flight. The baseline is what one would write by hand for the same three lines: an appendFile each, awaited.
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileAttemptStore } from '../../src/file.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';

const DELIVERIES = 12_800;

export const attemptStoreBenchmark: Benchmark = {
  name: 'attempt-store',
  processes: 2,
  rounds: 3,
  variants: [1, 64].flatMap((inFlight) => variantsAt(inFlight)),
};

function variantsAt(inFlight: number): Variant[] {
  const bare = `appendFile loop, ${inFlight} in flight`;
  return [
    { name: bare, warmUpRounds: 1, measure: () => measureAppendFile(inFlight) },
    {
      name: `file store, ${inFlight} in flight`,
      warmUpRounds: 1,
      baseline: bare,
      measure: () => measureStore(inFlight, 'all'),
    },
    {
      name: `file store, begin awaited, ${inFlight} in flight`,
      warmUpRounds: 1,
      baseline: bare,
      measure: () => measureStore(inFlight, 'begin'),
    },
  ];
}

function keyOf(n: number): string {
  return `persistent://public/default/orders\tbilling\t4711:${n}:-1`;
}

/** @param awaited only a begin has to be written before the delivery goes on; the rest may share the next one's write. */
function measureStore(inFlight: number, awaited: 'all' | 'begin'): Promise<Measurement> {
  return inFolder(async (path) => {
    const store = fileAttemptStore({ path });
    await store.open();
    const measured = await timed(inFlight, async (n) => {
      const key = keyOf(n);
      await store.begin(key, { attempt: 1, alone: false });
      const ended = store.end(key, { attempts: 1 });
      if (awaited === 'all') await ended;
      const deleted = store.delete(key);
      if (awaited === 'all') await deleted;
    });
    await store.close();
    return measured;
  });
}

function measureAppendFile(inFlight: number): Promise<Measurement> {
  return inFolder(async (path) => {
    const file = await open(path, 'a');
    const measured = await timed(inFlight, async (n) => {
      const key = JSON.stringify(keyOf(n));
      await file.appendFile(`open 0 0 - ${key}\n`);
      await file.appendFile(`closed 1 0 - ${key}\n`);
      await file.appendFile(`deleted ${key}\n`);
    });
    await file.close();
    return measured;
  });
}

async function timed(inFlight: number, deliver: (n: number) => Promise<void>): Promise<Measurement> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < DELIVERIES) {
      next += 1;
      await deliver(next);
    }
  };
  const stopwatch = new Stopwatch();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return stopwatch.perMessage(DELIVERIES);
}

async function inFolder(measure: (path: string) => Promise<Measurement>): Promise<Measurement> {
  const folder = await mkdtemp(join(tmpdir(), 'pulsework-bench-'));
  try {
    return await measure(join(folder, 'attempts.log'));
  } finally {
    await rm(folder, { recursive: true });
  }
}
