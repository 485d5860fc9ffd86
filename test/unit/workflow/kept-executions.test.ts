// Which executions are kept, and for how long.
import { expect, it } from 'vitest';
import type { Execution } from '../../../src/workflow/execution.js';
import { KeptExecutions } from '../../../src/workflow/kept-executions.js';

const key = (id: string) => ({ name: 'job', id });
const execution = (entries: number) => ({ entries, record: { seed: 's' } }) as unknown as Execution;

it('a long execution is kept until it is taken, once, with the version at which it stood', () => {
  const kept = new KeptExecutions();
  const long = execution(100);
  kept.keep(key('1'), long, 7);

  expect(kept.take(key('2'))).toBeUndefined();
  expect(kept.take(key('1'))).toEqual({ execution: long, known: { seed: 's', writeVersion: 7 } });
  expect(kept.take(key('1'))).toBeUndefined();
});

it('a short one is not, nor one that would need all the room', () => {
  const kept = new KeptExecutions();
  kept.keep(key('short'), execution(99), 1);
  kept.keep(key('huge'), execution(50_001), 1);

  expect(kept.take(key('short'))).toBeUndefined();
  expect(kept.take(key('huge'))).toBeUndefined();
});

it('beyond 50,000 entries in all, those that were kept first are let go', () => {
  const kept = new KeptExecutions();
  for (const id of ['1', '2', '3']) kept.keep(key(id), execution(20_000), 1);
  kept.keep(key('2'), execution(20_000), 2);

  expect(kept.take(key('1'))).toBeUndefined();
  expect(kept.take(key('2'))?.known.writeVersion).toBe(2);
  expect(kept.take(key('3'))?.known.writeVersion).toBe(1);
});
