// The world cut at every call that an order's workflow makes to the broker and to the store, in every way: it ends right, and
// no step runs again whose end was recorded.
import { fixedBackoff, minutes, seconds } from 'pulsework';
import type { CrashScenario, CrashedRun } from 'pulsework/testing';
import { FAULTS, workflowCrashes } from 'pulsework/testing';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

/** `rejects-late` and `hangs` leave what `throws` and `process-gone` leave, later: the campaign `workflow-crashes` has them all. */
const GATE_FAULTS = FAULTS.filter((fault) => fault !== 'rejects-late' && fault !== 'hangs');

interface World extends CrashScenario {
  /** What was done outside, with the key under which it was asked for. */
  readonly effects: string[];
}

/** An order that is packed in time, or not; its charge fails once. */
function order(isPacked: boolean): World {
  const effects: string[] = [];
  const Order = defineWorkflow({
    name: 'order',
    version: 1,
    input: z.object({ amount: z.number() }),
    async run(flow, { amount }) {
      const charge = await flow.step(
        'charge',
        ({ idempotencyKey, attempt }) => {
          if (attempt === 1) throw new Error('busy');
          effects.push(`charge ${idempotencyKey}`);
          return amount;
        },
        {
          compensate: (done) => void effects.push(`refund ${done}`),
          redelivery: { backoff: fixedBackoff(seconds(1)) },
        },
      );
      await flow.step('reserve', () => void effects.push('reserve'), {
        compensate: () => void effects.push('release'),
      });
      // Longer than the process may be gone, where it is to come.
      const packed = await flow.signal('packed', { timeoutMs: isPacked ? minutes(30) : minutes(1) });
      if (packed === undefined) throw flow.failure('never packed');
      await flow.sleep('cool-off', seconds(30));
      await flow.publish('receipts', { charge });
      return { charge };
    },
  });
  const start = { afterMs: seconds(1), workflow: Order, id: 'A-1', start: { amount: 5 } } as const;
  const packed = { afterMs: seconds(20), workflow: Order, id: 'A-1', signal: 'packed', payload: true } as const;
  // A process that is gone in the first twenty seconds is followed by another after them: the signal is sent in time for both.
  return { definitions: [Order], events: isPacked ? [start, packed] : [start], effects };
}

/** Effects without their repeats: an attempt whose end was not recorded may have been repeated, and only then. */
function once(effects: readonly string[]): readonly string[] {
  return [...new Set(effects)];
}

async function endedRight({ effects }: World, run: CrashedRun, isPacked: boolean): Promise<void> {
  const where = JSON.stringify({ cut: run.cut, hit: run.hit });
  expect(run.violations, where).toEqual([]);
  expect(
    run.workflows.map(({ status }) => status),
    where,
  ).toEqual([isPacked ? 'completed' : 'failed']);
  const done = ['charge order/A-1/1/0', 'reserve'];
  expect(once(effects), where).toEqual(isPacked ? done : [...done, 'release', 'refund 5']);
  const sent = await run.messageIds('receipts');
  expect(sent, where).toEqual(isPacked ? ['workflow/order/A-1/1/4'] : []);
  if (!isPacked) return;
  expect(run.workflows[0]?.result, where).toEqual({ charge: 5 });
}

it.each([true, false])(
  'an order ends right whatever call goes wrong, and however (packed: %s)',
  { timeout: 120_000 },
  async (isPacked) => {
    const hits = new Set<string>();
    let runs = 0;
    // The last calls of a run are scans of a world in which all has ended.
    const calls = (count: number) => Array.from({ length: Math.min(count, 60) }, (_, i) => i + 1);
    for await (const { scenario, run } of workflowCrashes(() => order(isPacked), { calls, faults: GATE_FAULTS })) {
      await endedRight(scenario, run, isPacked);
      if (run.cut !== undefined) hits.add(`${run.hit} ${run.cut.fault}`);
      runs += 1;
    }

    expect(runs).toBeGreaterThan(100);
    for (const fault of GATE_FAULTS)
      for (const call of ['store', 'acknowledge']) expect(hits).toContain(`${call} ${fault}`);
  },
);
