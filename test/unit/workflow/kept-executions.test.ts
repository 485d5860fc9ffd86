// Which executions are kept, and for how long.
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { JournalEntry } from '../../../src/core/workflow-journal.js';
import type { WorkflowRecord } from '../../../src/ports/workflow-store.js';
import type { Flow } from '../../../src/workflow/flow.js';
import { Execution } from '../../../src/workflow/execution.js';
import type { PlannedWorkflow } from '../../../src/workflow/planned-workflow.js';
import { KeptExecutions } from '../../../src/workflow/kept-executions.js';

const key = (id: string) => ({ name: 'job', id });
const MB = 2 ** 20;
const execution = (bytes: number, entries = 100) => ({ entries, bytes, record: { seed: 's' } }) as unknown as Execution;

it('a long execution is kept until it is taken, once, with the version at which it stood', () => {
  const kept = new KeptExecutions();
  const long = execution(MB);
  kept.keep(key('1'), long, 7);

  expect(kept.take(key('2'))).toBeUndefined();
  expect(kept.take(key('1'))).toEqual({ execution: long, known: { seed: 's', writeVersion: 7 } });
  expect(kept.take(key('1'))).toBeUndefined();
});

it('a short one is not, nor one that would need all the room', () => {
  const kept = new KeptExecutions();
  kept.keep(key('short'), execution(MB, 99), 1);
  kept.keep(key('huge'), execution(33 * MB), 1);

  expect(kept.take(key('short'))).toBeUndefined();
  expect(kept.take(key('huge'))).toBeUndefined();
});

it('beyond 32 MiB in all, those that were kept first are let go', () => {
  const kept = new KeptExecutions();
  for (const id of ['1', '2', '3']) kept.keep(key(id), execution(15 * MB), 1);
  kept.keep(key('2'), execution(15 * MB), 2);

  expect(kept.take(key('1'))).toBeUndefined();
  expect(kept.take(key('2'))?.known.writeVersion).toBe(2);
  expect(kept.take(key('3'))?.known.writeVersion).toBe(1);
});

it('an execution takes room for each entry, and for the results that it has', async () => {
  const workflow = {
    name: 'job',
    options: { version: 1, input: z.null() },
    run: (flow: Flow) => flow.step('work', () => 1),
  } as unknown as PlannedWorkflow;
  const record = { name: 'job', id: '1', run: 1, seed: 's', input: null, runStartedMs: 0 } as unknown as WorkflowRecord;
  const about = { at: 0, atMs: 0 };
  const journal: readonly JournalEntry[] = [
    { kind: 'command', command: 'step', name: 'work', ...about },
    { kind: 'attempt', attempt: 1, ...about },
    { kind: 'completed', value: 'x'.repeat(10_000), ...about },
  ];
  const long = new Execution(workflow, record, () => new Promise((resolve) => void setImmediate(resolve)));
  await long.replay(journal);

  expect(long.problem).toBeUndefined();
  expect(long.bytes).toBe(3 * 500 + 10_002);
});
