// Steps that a handler does: what it gets, what its answers make of the step, and what becomes of it when nobody answers, when the
// workflow is cancelled, or when code and journal do not agree on where the work is done.
import type { Delivery } from 'pulsework';
import { defineHandler, minutes, poison, retry, seconds, success, topic } from 'pulsework';
import { replayHistory, testWorkflow } from 'pulsework/testing';
import { remoteStep, stepFailure, stepResult, workflowEvents } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { AGAIN, Done, INPUT, Order, START, charger, charges, workflow } from '../../support/workflow/charging.js';

const refunds = topic('refunds', { payload: z.object({ id: z.string() }) });

it('a handler gets the payload and what it belongs to, and its result is that of the step', async () => {
  const seen: unknown[] = [];
  const handlers = [
    charger((delivery) => {
      seen.push({ payload: delivery.payload, key: delivery.key, ...remoteStep(delivery) });
      return stepResult(delivery, { id: `ch-${delivery.payload.orderId}` });
    }),
  ];
  await using test = await testWorkflow(Order, { handlers });
  await test.start(Order, START);

  expect(await test.result(Order, 'A-1')).toBe('charged ch-A-1');
  const workflowKey = { name: 'order', id: 'A-1' };
  const call = { workflow: workflowKey, step: 'charge', idempotencyKey: 'order/A-1/1/0', attempt: 1 };
  expect(seen).toEqual([{ payload: INPUT, key: 'A-1', ...call }]);
  const history = await test.history(Order, 'A-1');
  expect(history.journal.map(({ kind }) => kind)).toEqual(['command', 'attempt', 'completed', 'ended']);
  await replayHistory(Order, history);
});

it('waits for its answer without a process, in which only a row is kept', async () => {
  await using test = await testWorkflow(Order);
  await test.start(Order, START);
  const untilMs = test.clock.now() + minutes(5);
  expect((await test.describe(Order, 'A-1'))?.waits).toEqual([{ command: 'step', name: 'charge', untilMs }]);
  test.kill();
  await test.restart(Order, { handlers: [charger((delivery) => stepResult(delivery, { id: 'late' }))] });

  expect(await test.result(Order, 'A-1')).toBe('charged late');
  expect(await test.published('charges')).toEqual([INPUT]);
});

it('a failure that the handler tells of is tried again by the policy of the step, at once given up, or after its time', async () => {
  const attempts: string[] = [];
  const answers = [
    (delivery: Delivery) => stepFailure(delivery, new RangeError('busy')),
    (delivery: Delivery) => stepFailure(delivery, 'later', { retry: minutes(2) }),
    (delivery: Delivery) => stepFailure(delivery, 'the card is stolen', { retry: false }),
  ];
  const handlers = [
    charger((delivery) => {
      const { attempt = 0 } = remoteStep(delivery) ?? {};
      attempts.push(`${attempt} ${delivery.publishTimeMs - beganMs}`);
      return answers[attempt - 1]?.(delivery) ?? poison('there is no such attempt');
    }),
  ];
  await using test = await testWorkflow(Order, { handlers });
  const beganMs = test.clock.now();
  await test.start(Order, START);

  await expect(test.result(Order, 'A-1')).rejects.toThrow(/the card is stolen/);
  expect(attempts).toEqual(['1 0', '2 1000', `3 ${1_000 + minutes(2)}`]);
  const { journal } = await test.history(Order, 'A-1');
  expect(journal.flatMap((entry) => (entry.kind === 'attempt-failed' ? [entry.error.name] : []))).toEqual([
    'RangeError',
    'Error',
  ]);
});

it('a step that nobody answers has failed at its time limit, and is given up after its attempts', async () => {
  await using test = await testWorkflow(Order);
  await test.start(Order, START);

  await expect(test.result(Order, 'A-1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
  expect(await test.published('charges')).toHaveLength(3);
  const { journal } = await test.history(Order, 'A-1');
  const failed = journal.find(({ kind }) => kind === 'failed');
  expect(failed).toMatchObject({ at: 0, error: { code: 'WORKFLOW_STEP_TIMED_OUT' } });
});

it('a result of an earlier attempt is a result; a failure of one says nothing about the one under way', async () => {
  const late: Delivery[] = [];
  const told: string[] = [];
  const fails = defineHandler({
    name: 'Late.answer',
    source: topic('late'),
    subscription: 'late',
    handle: ({ payload }) => {
      const [first, second] = late;
      told.push(String(payload));
      if (first === undefined || second === undefined) return poison('nobody is there');
      return payload === 'fail' ? stepFailure(first, 'never', { retry: false }) : stepResult(second, { id: 'second' });
    },
  });
  const handlers = [charger((delivery) => (late.push(delivery), success())), fails];
  await using test = await testWorkflow(Order, { handlers });
  await test.start(Order, START);
  await test.advanceBy(minutes(5) + seconds(2));
  expect(late).toHaveLength(2);
  const publisher = test.runtime.publisher(topic('late'));
  void publisher.publish('fail');
  await test.advanceBy(seconds(1));
  expect((await test.describe(Order, 'A-1'))?.status).toBe('running');
  await test.advanceBy(minutes(5));
  expect(late).toHaveLength(3);
  void publisher.publish('done');

  expect(await test.result(Order, 'A-1')).toBe('charged second');
  expect(told).toEqual(['fail', 'done']);
});

it('the first answer of an attempt counts, however often the handler runs', async () => {
  let runs = 0;
  const handlers = [
    charger(async (delivery) => {
      runs += 1;
      const publisher = test.runtime.publisher(workflowEvents(Order));
      const payload = { run: 1, at: 0, attempt: 1, value: { id: `run ${runs}` } };
      const eventId = 'workflow/order/A-1/1/0/1/done';
      await publisher.publish({ v: 1, id: 'A-1', kind: 'step-done', eventId, payload } as never, { key: 'A-1' });
      return runs < 3 ? retry('once more') : stepResult(delivery, { id: 'last' });
    }),
  ];
  const test = await testWorkflow(Order, { handlers });
  await test.start(Order, START);

  expect(await test.result(Order, 'A-1')).toBe('charged run 1');
  await test.advanceBy(minutes(1));
  expect(runs).toBe(3);
  await test.close();
});

it('a result that does not match its schema is a failed attempt', async () => {
  const handlers = [
    charger((delivery) => stepResult(delivery, remoteStep(delivery)?.attempt === 2 ? { id: 'ok' } : 'no')),
  ];
  await using test = await testWorkflow(Order, { handlers });
  await test.start(Order, START);

  expect(await test.result(Order, 'A-1')).toBe('charged ok');
  const { journal } = await test.history(Order, 'A-1');
  const failed = journal.find(({ kind }) => kind === 'attempt-failed');
  expect(failed).toMatchObject({ error: { code: 'WORKFLOW_VALUE_INVALID' }, spent: true });
});

it('a payload that the topic refuses gives the step up at once', async () => {
  const Wrong = workflow((flow) => flow.step('charge', { topic: charges, input: { orderId: 'A-1' } as never }));
  await using test = await testWorkflow(Wrong);
  await test.start(Wrong, START);

  await expect(test.result(Wrong, 'A-1')).rejects.toThrow(/payload does not match its schema/);
});

it('is undone by a handler too, with its result, in reverse order', async () => {
  const log: string[] = [];
  const Undone = workflow(async (flow) => {
    await flow.step(
      'charge',
      { topic: charges, input: INPUT, result: Done },
      { compensate: { topic: refunds, input: ({ id }) => ({ id }), redelivery: AGAIN } },
    );
    await flow.step('pack', () => void log.push('pack'), { compensate: () => void log.push('unpack') });
    throw flow.failure('nobody is at home');
  });
  const refund = defineHandler({
    name: 'Bank.refund',
    source: refunds,
    subscription: 'bank',
    handle: (delivery) => {
      const { attempt, idempotencyKey } = remoteStep(delivery) ?? {};
      log.push(`refund ${delivery.payload.id} ${attempt} ${idempotencyKey}`);
      return attempt === 1 ? stepFailure(delivery, 'busy') : stepResult(delivery);
    },
  });
  const handlers = [charger((delivery) => stepResult(delivery, { id: 'ch-1' })), refund];
  await using test = await testWorkflow(Undone, { handlers });
  await test.start(Undone, START);

  await expect(test.result(Undone, 'A-1')).rejects.toThrow(/nobody is at home/);
  expect(log).toEqual(['pack', 'unpack', 'refund ch-1 1 order/A-1/1/3', 'refund ch-1 2 order/A-1/1/3']);
});

it('a compensation whose payload cannot be made is stuck, and goes on after a repair', async () => {
  const version = (input: (done: { readonly id: string }) => { readonly id: string }) =>
    workflow(async (flow) => {
      const charge = { topic: charges, input: INPUT, result: Done };
      await flow.step('charge', charge, { compensate: { topic: refunds, input } });
      throw flow.failure('no');
    });
  const broken = version(() => {
    throw new Error('no such field');
  });
  const refund = defineHandler({
    name: 'Bank.refund',
    source: refunds,
    subscription: 'bank',
    handle: (d) => stepResult(d),
  });
  const handlers = [charger((delivery) => stepResult(delivery, { id: 'ch-1' })), refund];
  await using test = await testWorkflow(broken, { handlers });
  await test.start(broken, START);
  expect(await test.describe(broken, 'A-1')).toMatchObject({ status: 'stuck', error: { message: 'no such field' } });
  const mended = version(({ id }) => ({ id }));
  await test.restart(mended);
  void test.workflows.resume(mended, 'A-1');

  await expect(test.result(mended, 'A-1')).rejects.toThrow(/no/);
  expect(await test.published('refunds')).toEqual([{ id: 'ch-1' }]);
});

it('a cancellation waits for the answer to what was sent, and undoes it', async () => {
  const waiting: Delivery[] = [];
  const log: string[] = [];
  const answers = defineHandler({
    name: 'Late.answer',
    source: topic('late'),
    subscription: 'late',
    handle: () => (waiting[0] === undefined ? poison('none') : stepResult(waiting[0], { id: 'ch-1' })),
  });
  const Cancelled = workflow(async (flow) => {
    const charge = { topic: charges, input: INPUT, result: Done };
    await flow.step('charge', charge, { compensate: ({ id }) => void log.push(`refund ${id}`) });
    await flow.step('pack', () => void log.push('pack'));
  });
  await using test = await testWorkflow(Cancelled, {
    handlers: [charger((delivery) => (waiting.push(delivery), success())), answers],
  });
  await test.start(Cancelled, START);
  await test.cancel(Cancelled, 'A-1');
  await test.advanceBy(minutes(30));
  expect(await test.describe(Cancelled, 'A-1')).toMatchObject({ status: 'running', waits: [{ name: 'charge' }] });
  void test.runtime.publisher(topic('late')).publish('now');

  await expect(test.result(Cancelled, 'A-1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log).toEqual(['refund ch-1']);
});

it('a step that ran here and is a handler’s now is in doubt and sent; and the other way round it runs here', async () => {
  const here = workflow((flow) => flow.step('charge', () => new Promise<string>(() => undefined)));
  const there = workflow((flow) => flow.step('charge', { topic: charges, input: INPUT }));
  const backHere = workflow((flow) => flow.step('charge', ({ attempt }) => `here ${attempt}`));
  await using test = await testWorkflow(here);
  await test.start(here, START);
  test.kill();
  await test.restart(there);
  expect(await test.published('charges')).toEqual([INPUT]);
  await test.restart(backHere);
  // Whatever wakes it.
  void test.workflows.resume(backHere, 'A-1');

  expect(await test.result(backHere, 'A-1')).toBe('here 3');
});

it('does not mind deliveries that no workflow sent', async () => {
  const outcomes: string[] = [];
  const handlers = [
    charger((delivery) => {
      const { amount } = delivery.payload;
      expect(remoteStep(delivery)).toBeUndefined();
      const all = [
        stepResult(delivery, { id: 'x' }),
        stepFailure(delivery, 'again'),
        stepFailure(delivery, 'later', { retry: seconds(5) }),
        stepFailure(delivery, 'never', { retry: false }),
      ];
      outcomes.push(...all.map(({ kind }) => kind));
      return all[amount] ?? success();
    }),
  ];
  await using test = await testWorkflow(Order, { handlers });
  void test.runtime.publisher(charges).publish({ orderId: 'x', amount: 0 });
  await test.settled();

  expect(outcomes).toEqual(['success', 'retry', 'retry-after', 'poison']);
});

it('can be replaced in tests like any other step', async () => {
  await using test = await testWorkflow(Order, { steps: { charge: () => ({ id: 'of the test' }) } });
  await test.start(Order, START);

  expect(await test.result(Order, 'A-1')).toBe('charged of the test');
  expect(await test.published('charges')).toEqual([]);
});

it.each([
  [{ topic: 5, input: 1 }, {}, /"topic" must be a topic\(\) or its name, got 5/],
  [{ topic: 'x', inputs: 1 }, {}, /unknown option "inputs"/],
  [{ topic: 'x', result: 'text' }, {}, /"result" must be a Standard Schema/],
  ['charges', {}, /its work must be a function, or \{ topic, input \}/],
  [{ topic: 'x' }, { compensate: { topic: '', input: () => 1 } }, /"compensate.topic" must be a topic/],
  [{ topic: 'x' }, { compensate: { topic: 'y' } }, /compensate.input/],
] as const)('what is wrong with a step is told: %j', async (work, options, message) => {
  const Wrong = workflow((flow) => flow.step('charge', work as never, options as never));
  await using test = await testWorkflow(Wrong);
  await test.start(Wrong, START);

  const record = await test.describe(Wrong, 'A-1');
  expect(record?.status).toBe('blocked');
  expect(record?.error?.message).toMatch(message);
});
