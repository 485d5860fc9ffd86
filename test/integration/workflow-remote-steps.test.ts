// Steps that a handler of another process does, on a real broker: the work, its failure, its result and what undoes it are messages.
import { Runtime, consoleLogger, defineHandler, fixedBackoff, seconds, topic } from 'pulsework';
import { wire } from 'pulsework/wire';
import {
  Workflows,
  defineWorkflow,
  memoryWorkflowStore,
  remoteStep,
  stepFailure,
  stepResult,
  workflowEvents,
} from 'pulsework/workflow';
import { expect } from 'vitest';
import { z } from 'zod';
import { test } from '../support/real-pulsar/integration-test.js';

const Item = z.object({ item: z.string() });

test('a step is done, tried again and undone by a handler elsewhere', async ({ pulsar }) => {
  const base = pulsar.newTopic().replace('persistent://public/default/', '');
  const charges = topic(`${base}-charges`, { payload: Item });
  const refunds = topic(`${base}-refunds`, { payload: Item });
  const redelivery = { backoff: fixedBackoff(seconds(0.2)) };
  const Order = defineWorkflow({
    name: `${base}-order`,
    version: 1,
    input: Item,
    async run(flow, input) {
      const compensate = { topic: refunds, input: ({ item }: z.infer<typeof Item>) => ({ item }), redelivery };
      const { item } = await flow.step('charge', { topic: charges, input, result: Item }, { compensate, redelivery });
      if (item === 'sofa') throw flow.failure('no room for it');
      return item;
    },
  });
  const did: string[] = [];
  const charge = defineHandler({
    name: 'Bank.charge',
    source: charges,
    subscription: 'bank',
    publishes: [workflowEvents(Order)],
    handle: (delivery) => {
      const { attempt, workflow } = remoteStep(delivery) ?? {};
      did.push(`charge ${workflow?.id} ${attempt}`);
      return attempt === 1 ? stepFailure(delivery, 'busy') : stepResult(delivery, delivery.payload);
    },
  });
  const refund = defineHandler({
    name: 'Bank.refund',
    source: refunds,
    subscription: 'bank',
    handle: (delivery) => {
      did.push(`refund ${delivery.payload.item}`);
      return stepResult(delivery);
    },
  });
  const logger = consoleLogger({ level: 'silent' });
  const newTransport = () => wire({ serviceUrl: pulsar.serviceUrl });
  const bank = await Runtime.start({ transport: newTransport(), handlers: [charge, refund], logger });
  const runtime = await Runtime.start({ transport: newTransport(), handlers: [], logger });
  const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: [Order] });
  const lamp = await workflows.start(Order, { id: 'lamp', input: { item: 'lamp' } });
  const sofa = await workflows.start(Order, { id: 'sofa', input: { item: 'sofa' } });

  expect(await lamp.result()).toBe('lamp');
  await expect(sofa.result()).rejects.toThrow(/no room for it/);
  expect(did.toSorted()).toEqual(['charge lamp 1', 'charge lamp 2', 'charge sofa 1', 'charge sofa 2', 'refund sofa']);
  await runtime.close();
  await bank.close();
});
