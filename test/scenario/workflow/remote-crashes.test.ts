// The world cut at every call that a workflow and the handler of its steps make, in every way: each step has one end, and what was
// done in a workflow that failed is undone.
import { defineHandler, fixedBackoff, seconds, topic } from 'pulsework';
import type { CrashScenario, CrashedRun } from 'pulsework/testing';
import { FAULTS, workflowCrashes } from 'pulsework/testing';
import { defineWorkflow, remoteStep, stepFailure, stepResult } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

const Item = z.object({ item: z.string() });
const charges = topic('charges', { payload: Item });
const refunds = topic('refunds', { payload: Item });

interface World extends CrashScenario {
  /** What handlers did, with the key under which they were asked. */
  readonly effects: string[];
}

/** Its charge fails once; with `fails` the second step does, for good. */
function order(fails: boolean): World {
  const effects: string[] = [];
  const redelivery = { backoff: fixedBackoff(seconds(1)) };
  const Order = defineWorkflow({
    name: 'order',
    version: 1,
    input: z.null(),
    async run(flow) {
      const compensate = { topic: refunds, input: (done: { readonly item: string }) => done, redelivery };
      const lamp = await flow.step(
        'charge lamp',
        { topic: charges, input: { item: 'lamp' }, result: Item },
        { compensate, redelivery },
      );
      const sofa = await flow.step('charge sofa', { topic: charges, input: { item: 'sofa' }, result: Item });
      return `${lamp.item}, ${sofa.item}`;
    },
  });
  const charge = defineHandler({
    name: 'Bank.charge',
    source: charges,
    subscription: 'bank',
    handle: (delivery) => {
      const { item } = delivery.payload;
      const { attempt, idempotencyKey } = remoteStep(delivery) ?? {};
      if (item === 'lamp' && attempt === 1) return stepFailure(delivery, 'busy');
      if (item === 'sofa' && fails) return stepFailure(delivery, 'no sofas', { retry: false });
      effects.push(`charge ${item} ${idempotencyKey}`);
      return stepResult(delivery, { item });
    },
  });
  const refund = defineHandler({
    name: 'Bank.refund',
    source: refunds,
    subscription: 'bank',
    handle: (delivery) => {
      effects.push(`refund ${delivery.payload.item} ${remoteStep(delivery)?.idempotencyKey}`);
      return stepResult(delivery);
    },
  });
  const events = [{ afterMs: seconds(1), workflow: Order, id: 'A-1', start: null }];
  return { definitions: [Order], handlers: [charge, refund], events, effects };
}

function endedRight({ effects }: World, run: CrashedRun, fails: boolean): void {
  const where = JSON.stringify({ cut: run.cut, hit: run.hit });
  const [record] = run.workflows;
  expect(record?.status, where).toBe(fails ? 'failed' : 'completed');
  if (!fails) expect(record?.result, where).toBe('lamp, sofa');
  // Nothing is done under another key; repeats, of which a service sees the key, come before what follows.
  const lamp = 'charge lamp order/A-1/1/0';
  const rest = fails ? 'refund lamp order/A-1/1/2' : 'charge sofa order/A-1/1/1';
  expect([...new Set(effects)], where).toEqual([lamp, rest]);
  expect(effects.lastIndexOf(lamp), where).toBeLessThan(effects.indexOf(rest));
}

/** `rejects-late` and `hangs` leave what `throws` and `process-gone` leave, later. */
const GATE_FAULTS = FAULTS.filter((fault) => fault !== 'rejects-late' && fault !== 'hangs');

it.each([
  [true, GATE_FAULTS],
  [false, ['answer-lost', 'process-gone']],
] as const)('each call cut, in each way (fails: %s)', { timeout: 120_000 }, async (fails, faults) => {
  const hits = new Set<string>();
  const calls = (count: number) => Array.from({ length: Math.min(count, 60) }, (_, i) => i + 1);
  for await (const { scenario, run } of workflowCrashes(() => order(fails), { calls, faults })) {
    endedRight(scenario, run, fails);
    if (run.cut !== undefined) hits.add(`${run.hit} ${run.cut.fault}`);
  }

  for (const fault of faults)
    for (const call of ['store', 'publish', 'acknowledge']) expect(hits).toContain(`${call} ${fault}`);
});
