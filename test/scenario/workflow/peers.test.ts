// The processes that other workflow engines show in their tutorials, as they are written here: a money transfer, an expense with
// reminders, a subscription of years, a fan-out, a person against a deadline, a cancellation in the middle of work.
import { days, fixedBackoff, hours, minutes, poison, seconds } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

/** Accounts that recognise a repeated request by its key. */
class Bank {
  readonly balances = new Map<string, number>([
    ['ann', 100],
    ['bob', 0],
  ]);
  readonly #done = new Set<string>();
  /** How often the bank is not there first. */
  outages = 0;

  move(account: string, amount: number, key: string): number {
    if (this.outages-- > 0) throw new Error('the bank is not there');
    const balance = this.balances.get(account);
    if (balance === undefined) throw new RangeError(`there is no account ${account}`);
    if (this.#done.has(key)) return balance;
    if (balance + amount < 0) throw new RangeError(`${account} has only ${balance}`);
    this.#done.add(key);
    this.balances.set(account, balance + amount);
    return balance + amount;
  }
}

function transferOn(bank: Bank) {
  const moved = (flow: Flow, step: string, account: string, amount: number) =>
    flow.step(
      step,
      ({ idempotencyKey }) => {
        try {
          return bank.move(account, amount, idempotencyKey);
        } catch (error) {
          if (error instanceof RangeError) return poison(error);
          throw error;
        }
      },
      { compensate: (_, { idempotencyKey }) => void bank.move(account, -amount, idempotencyKey) },
    );
  return defineWorkflow({
    name: 'transfer',
    version: 1,
    input: z.object({ from: z.string(), to: z.string(), amount: z.number() }),
    async run(flow, { from, to, amount }) {
      await moved(flow, 'withdraw', from, -amount);
      await moved(flow, 'deposit', to, amount);
      return 'transferred';
    },
  });
}

it.each([
  { says: 'arrives, although the bank is not there at first', to: 'bob', amount: 30, outages: 3, ann: 70, bob: 30 },
  { says: 'to an account that is not there is given back', to: 'eve', amount: 30, outages: 0, ann: 100, bob: 0 },
  { says: 'of more than there is moves nothing', to: 'bob', amount: 300, outages: 0, ann: 100, bob: 0 },
])('money transfer: one that $says', async ({ to, amount, outages, ann, bob }) => {
  const bank = new Bank();
  bank.outages = outages;
  const Transfer = transferOn(bank);
  await using test = await testWorkflow(Transfer);
  await test.start(Transfer, { id: 't1', input: { from: 'ann', to, amount } });
  const isRight = bob > 0;
  const end = await test.result(Transfer, 't1').catch((error: unknown) => (error as { code: string }).code);

  expect(end).toBe(isRight ? 'transferred' : 'WORKFLOW_FAILED');
  expect([bank.balances.get('ann'), bank.balances.get('bob')]).toEqual([ann, bob]);
});

it('expense approval: reminders each eight hours, a director after three of them, and both may decide', async () => {
  const mails: string[] = [];
  const Approval = defineWorkflow({
    name: 'expense',
    version: 1,
    input: z.null(),
    async run(flow) {
      for (let reminders = 0; ; reminders++) {
        const to = reminders < 3 ? 'manager' : 'director';
        await flow.step('mail', () => void mails.push(`${reminders} ${to}`));
        const first = await flow.race({ decision: flow.signal('decision'), timer: flow.sleep('remind', hours(8)) });
        if (first.winner === 'decision') return first.value;
      }
    },
  });
  await using test = await testWorkflow(Approval);
  await test.start(Approval, { id: 'e1', input: null });
  await test.advanceBy(hours(33));
  test.kill();
  await test.restart();
  expect(mails).toEqual(['0 manager', '1 manager', '2 manager', '3 director', '4 director']);
  expect((await test.describe(Approval, 'e1'))?.waits.map(({ name }) => name)).toEqual(['decision', 'remind']);
  await test.signal(Approval, 'e1', 'decision', 'approved');

  expect(await test.result(Approval, 'e1')).toBe('approved');
  expect(mails).toHaveLength(5);
});

it('subscription: a trial, then three years of months, each a run of its own, with a price that changes on the way', async () => {
  const bills: string[] = [];
  const Subscription = defineWorkflow({
    name: 'subscription',
    version: 1,
    input: z.object({ month: z.number(), price: z.number() }),
    async run(flow, { month, price }): Promise<string> {
      flow.query('price', () => price);
      if (month === 36) return `ended after ${month} months`;
      const due = month === 0 ? flow.now() + days(30) : nextMonth(flow.now());
      const first = await flow.race({ change: flow.signal('price'), due: flow.sleep('until due', new Date(due)) });
      const next = first.winner === 'change' ? Number(first.value) : price;
      if (first.winner === 'change') await flow.sleep('until due', new Date(due));
      await flow.step('bill', () => void bills.push(`${new Date(due).toISOString().slice(0, 7)} ${next}`));
      return flow.continueAsNew({ month: month + 1, price: next });
    },
  });
  await using test = await testWorkflow(Subscription);
  await test.start(Subscription, { id: 's1', input: { month: 0, price: 10 } });
  const began = test.clock.now();
  await test.advanceBy(days(365));
  await test.signal(Subscription, 's1', 'price', 12);
  await test.advanceBy(days(31));
  expect(await test.query(Subscription, 's1', 'price')).toBe(12);
  test.kill();
  await test.restart();

  expect(await test.result(Subscription, 's1')).toBe('ended after 36 months');
  expect(bills).toHaveLength(36);
  expect(new Set(bills.map((bill) => bill.slice(0, 7))).size).toBe(36);
  expect(bills.filter((bill) => bill.endsWith(' 10'))).toHaveLength(13);
  expect([bills[0], bills.at(-1)]).toEqual(['2026-01 10', '2028-12 12']);
  expect((test.clock.now() - began) / days(365)).toBeGreaterThan(2.9);
  const { record, journal } = await test.history(Subscription, 's1');
  expect([record.run, journal.length < 10]).toEqual([37, true]);
});

/** The first of the month after it, in UTC. */
function nextMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

it(
  'fan-out: 1,000 children that end one after the other come back, and the parent is not replayed for each',
  { timeout: 180_000 },
  async () => {
    const Child = defineWorkflow({
      name: 'child',
      version: 1,
      input: z.number(),
      async run(flow, n) {
        await flow.sleep('work', seconds(n));
        return n;
      },
    });
    let replays = 0;
    const Parent = defineWorkflow({
      name: 'parent',
      version: 1,
      input: z.number(),
      async run(flow, count) {
        replays += 1;
        const results = await flow.all(Array.from({ length: count }, (_, n) => flow.child(Child, n)));
        return results.reduce<number>((sum, n) => sum + Number(n), 0);
      },
    });
    await using test = await testWorkflow([Parent, Child]);
    await test.start(Parent, { id: 'p', input: 1_000 });
    await test.advanceBy(minutes(5));
    test.kill();
    await test.restart();

    expect(await test.result(Parent, 'p')).toBe(499_500);
    expect((await test.workflows.list({ name: 'child', status: 'completed', limit: 2_000 })).length).toBe(1_000);
    expect(replays).toBeLessThan(5);
  },
);

it.each([
  { says: 'before the deadline', signalAfterMs: hours(1) - 1, end: 'yes' },
  { says: 'after it', signalAfterMs: hours(1) + 1, end: undefined },
])('a person against a deadline: an answer that comes $says, also across a crash', async ({ signalAfterMs, end }) => {
  const Question = defineWorkflow({
    name: 'question',
    version: 1,
    input: z.null(),
    run: (flow) => flow.signal('answer', { payload: z.string(), timeoutMs: hours(1) }),
  });
  await using test = await testWorkflow(Question);
  for (const id of ['here', 'crashed']) await test.start(Question, { id, input: null });
  await test.advanceBy(signalAfterMs);
  for (const id of ['here', 'crashed']) await test.signal(Question, id, 'answer', 'yes');
  test.kill();
  await test.restart();

  for (const id of ['here', 'crashed']) expect(await test.result(Question, id)).toBe(end);
});

it('a person against a deadline: an answer that lies there when the process is back wins, however late that is', async () => {
  const Question = defineWorkflow({
    name: 'question',
    version: 1,
    input: z.null(),
    run: (flow) => flow.signal('answer', { timeoutMs: hours(1) }),
  });
  await using test = await testWorkflow(Question);
  await test.start(Question, { id: 'q', input: null });
  await test.workflows.signal('question', 'q', 'answer', 'in time');
  test.kill();
  await test.advanceBy(hours(5));
  await test.restart();

  expect(await test.result(Question, 'q')).toBe('in time');
});

it('cancellation in the middle of a step: it is told, says how far it came, and just that is undone', async () => {
  const rows = new Set<number>();
  const undone: number[] = [];
  const Import = importInto(rows, undone, (ms, run) => void test.clock.setTimer(ms, run));
  await using test = await testWorkflow(Import);
  await test.start(Import, { id: 'i', input: 1_000 });
  await test.advanceBy(seconds(10));
  expect(rows.size).toBe(10);
  await test.cancel(Import, 'i');

  await expect(test.result(Import, 'i')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(undone).toEqual([10]);
  expect(rows.size).toBe(0);
  expect(test.runs.map(({ step, attempt }) => `${step} ${attempt}`)).toEqual(['import 1', 'undo import 1']);
});

/** A row each second, until all are there or it is told to end. */
function importInto(rows: Set<number>, undone: number[], timer: (ms: number, run: () => void) => void) {
  return defineWorkflow({
    name: 'import',
    version: 1,
    input: z.number(),
    async run(flow, count) {
      const imported = await flow.step(
        'import',
        ({ signal }) =>
          new Promise<number>((resolve) => {
            const next = (): void => {
              if (rows.size === count || signal.aborted) return resolve(rows.size);
              rows.add(rows.size);
              timer(seconds(1), next);
            };
            timer(seconds(1), next);
          }),
        {
          compensate: (n) => {
            undone.push(n);
            for (let row = 0; row < n; row++) rows.delete(row);
          },
          redelivery: { backoff: fixedBackoff(0) },
        },
      );
      await flow.sleep('settle', minutes(1));
      return imported;
    },
  });
}
