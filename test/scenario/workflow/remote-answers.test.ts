// How the answer of a handler that does a step gets to the workflow: in which transaction, to which topic, and again after a failure.
import type { HandlerDefinition } from 'pulsework';
import {
  Runtime,
  consoleLogger,
  defineHandler,
  effects,
  hours,
  idempotent,
  memoryIdempotencyStore,
  success,
  systemClock,
} from 'pulsework';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { memoryOutbox, testRuntime, testWorkflow } from 'pulsework/testing';
import type { MemoryOutbox, MemoryOutboxTransaction } from 'pulsework/testing';
import {
  Workflows,
  memoryWorkflowStore,
  remoteStep,
  stepFailure,
  stepResult,
  workflowEvents,
} from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { STEP_PROPERTY } from '../../../src/workflow/step-address.js';
import type { Charge } from '../../support/workflow/charging.js';
import { INPUT, Order, START, charger, charges } from '../../support/workflow/charging.js';

it('a transactional handler answers in the transaction of its acknowledgement', async () => {
  const handler = defineHandler({
    name: 'Bank.charge',
    source: charges,
    subscription: 'bank',
    publishes: [workflowEvents(Order)],
    transactional: true,
    handle: (delivery) => stepResult(delivery, { id: 'ch-1' }),
  });
  // The broker of the test kit has no transactions.
  const logger = consoleLogger({ level: 'silent' });
  const runtime = await Runtime.start({ transport: embedded(), handlers: [handler], logger });
  const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: [Order] });

  expect(await (await workflows.start(Order, START)).result()).toBe('charged ch-1');
  await runtime.close();
});

describe('an answer goes to where the work says, whatever names the runtime of the handler gives to topics', () => {
  async function chargedBy(handler: HandlerDefinition, outbox?: MemoryOutbox): Promise<unknown> {
    const broker = new EmbeddedBroker({ clock: systemClock });
    const logger = consoleLogger({ level: 'silent' });
    const home = await Runtime.start({ transport: embedded({ broker }), handlers: [], logger });
    const workflows = await Workflows.start({ runtime: home, store: memoryWorkflowStore(), definitions: [Order] });
    const topics = (name: string): string => (name === 'charges' ? 'public/default/charges' : `staging-${name}`);
    const own = { topics, namespace: 'acme/bank', outbox };
    const bank = await Runtime.start({ transport: embedded({ broker }), handlers: [handler], logger, ...own });
    const result = await (await workflows.start(Order, START)).result();
    await bank.close();
    await home.close();
    return result;
  }

  it('with its outcome', async () => {
    expect(await chargedBy(charger((delivery) => stepResult(delivery, { id: 'ch-1' })))).toBe('charged ch-1');
  });

  it('from the outbox, in the transaction of its effects', async () => {
    const outbox = memoryOutbox();
    const bank = effects<MemoryOutboxTransaction, Charge>({ store: outbox.effects(), ttlMs: hours(1) });
    const handler = defineHandler({
      name: 'Bank.charge',
      source: charges,
      subscription: 'bank',
      publishes: [workflowEvents('order')],
      effects: bank,
      handle(delivery) {
        outbox.add(bank.transaction(delivery), ...stepResult(delivery, { id: 'ch-1' }).messages);
        return success();
      },
    });
    expect(await chargedBy(handler, outbox)).toBe('charged ch-1');
  });
});

it('an answer that a message asks for elsewhere is refused where `publishes` does not list it', async () => {
  const address = { v: 1, name: 'order', id: 'A-1', run: 1, at: 0, step: 'charge', attempt: 1, idempotencyKey: 'k' };
  const handler = charger((delivery) => stepResult(delivery, { id: 'ch-1' }));
  await using test = await testRuntime({ handlers: [handler] });
  const events = 'persistent://acme/bank/pulsework-workflow-order';
  for (const replyTo of [events, 'persistent://public/default/payments'])
    await test.publish(charges, INPUT, { properties: { [STEP_PROPERTY]: JSON.stringify({ ...address, replyTo }) } });
  await test.advanceBy(hours(1));

  expect(test.published(events)).toHaveLength(1);
  expect(() => test.published('payments')).toThrow(/nothing was published to it/);
  const reason = expect.stringMatching(/payments", which its "publishes" does not list/) as unknown;
  expect(test.deadLetters(charges)).toMatchObject([{ reason }]);
});

it('a handler that is idempotent is asked again after a failure that it has told of', async () => {
  const answers = [stepFailure, stepFailure, stepResult];
  const store = memoryIdempotencyStore();
  const asked: (number | undefined)[] = [];
  const handler = defineHandler({
    name: 'Bank.charge',
    source: charges,
    subscription: 'bank',
    idempotent: idempotent(charges, {
      key: (delivery) => remoteStep(delivery)?.idempotencyKey ?? '',
      store,
      ttlMs: hours(24),
    }),
    handle(delivery) {
      asked.push(remoteStep(delivery)?.attempt);
      const told = answers[asked.length - 1] ?? stepFailure;
      return told === stepResult ? stepResult(delivery, { id: 'ch-1' }) : stepFailure(delivery, 'the bank is down');
    },
  });
  await using test = await testWorkflow(Order, { handlers: [handler] });
  await test.start(Order, START);

  expect(await test.result(Order, 'A-1')).toBe('charged ch-1');
  expect(asked).toEqual([1, 2, 3]);
});
