// An expense that people decide about, as one method: a manager is asked, reminded, and when nothing comes the director is
// asked. The money is held meanwhile, and given back unless somebody approves.
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { z } from 'zod';

export const Expense = z.object({ id: z.string(), amount: z.number().positive() });
export type Expense = z.infer<typeof Expense>;
export const Decision = z.object({ by: z.string(), approved: z.boolean() });
export type Decision = z.infer<typeof Decision>;

/** What the workflow does outside. */
export interface Office {
  hold(expense: Expense, idempotencyKey: string): Promise<void>;
  giveBack(expense: Expense): Promise<void>;
  ask(who: string, expense: Expense): Promise<void>;
  remind(who: string, expense: Expense): Promise<void>;
  payOut(expense: Expense, idempotencyKey: string): Promise<void>;
}

/** In the order in which they are asked. */
const PEOPLE = ['manager', 'director'];

/** @param remindAfterMs how long each waits before the reminder, and again after it */
export function expenseApproval(office: Office, remindAfterMs: number) {
  return defineWorkflow({
    name: 'expense-approval',
    version: 1,
    input: Expense,
    result: Decision,
    signals: { decision: Decision },
    async run(flow, expense) {
      await flow.step('hold', ({ idempotencyKey }) => office.hold(expense, idempotencyKey), {
        compensate: () => office.giveBack(expense),
      });
      const decision = await decisionOf(flow, expense, office, remindAfterMs);
      if (decision === undefined) throw flow.failure('nobody decided');
      if (!decision.approved) throw flow.failure(`refused by ${decision.by}`); // the money is given back
      await flow.step('pay out', ({ idempotencyKey }) => office.payOut(expense, idempotencyKey));
      return decision;
    },
  });
}

/** Whoever decides first: a manager who answers late still counts. */
async function decisionOf(flow: Flow, expense: Expense, office: Office, remindAfterMs: number) {
  let asked = 'nobody';
  flow.query('asked', () => asked);
  for (const who of PEOPLE) {
    asked = who;
    await flow.step(`ask ${who}`, () => office.ask(who, expense));
    const decision = await flow.signal('decision', { payload: Decision, timeoutMs: remindAfterMs });
    if (decision !== undefined) return decision;
    await flow.step(`remind ${who}`, () => office.remind(who, expense));
    const late = await flow.signal('decision', { payload: Decision, timeoutMs: remindAfterMs });
    if (late !== undefined) return late;
  }
  return undefined;
}
