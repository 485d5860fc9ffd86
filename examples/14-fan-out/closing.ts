// The closing of a month: a statement for each account, each a workflow of its own in whichever process has room, and one that
// waits for all of them. An account that cannot be closed is named; when most cannot, the month stays open.
import { topic } from 'pulsework';
import type { StepOutcome } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { z } from 'zod';

const Statement = z.object({ month: z.string(), account: z.string() });
const Month = z.object({ month: z.string(), accounts: z.array(z.string()) });
const Closed = z.object({ month: z.string(), total: z.number(), failed: z.array(z.string()) });
export type Closed = z.infer<typeof Closed>;

export const closings = topic('closings', { payload: Closed });

/** What the workflows do outside. */
export interface Books {
  lock(month: string): Promise<void>;
  unlock(month: string): Promise<void>;
  /** @returns the balance, or why there is none */
  add(month: string, account: string): Promise<number | StepOutcome>;
  write(month: string, account: string, balance: number): Promise<void>;
  discard(month: string, account: string): Promise<void>;
}

export function monthClosing(books: Books) {
  const statement = defineWorkflow({
    name: 'statement',
    version: 1,
    input: Statement,
    result: z.number(),
    async run(flow, { month, account }) {
      const balance = await flow.step('add', () => books.add(month, account), { redelivery: { maxDeliveries: 3 } });
      await flow.step('write', () => books.write(month, account, balance), {
        compensate: () => books.discard(month, account),
      });
      return balance;
    },
  });

  const closing = defineWorkflow({
    name: 'month-closing',
    version: 1,
    input: Month,
    result: Closed,
    async run(flow, { month, accounts }) {
      await flow.step('lock', () => books.lock(month), { compensate: () => books.unlock(month) });
      const failed: string[] = [];
      const balances = await flow.all(
        accounts.map((account) =>
          flow.child(statement, { month, account }, { id: `${month}/${account}` }).catch((error: unknown) => {
            if (flow.cancelled.aborted) throw error; // not the account's failure
            failed.push(account);
            return 0;
          }),
        ),
      );
      if (failed.length * 2 > accounts.length) throw flow.failure('most accounts cannot be closed'); // unlocks the month
      const closed = { month, total: balances.reduce((sum, balance) => sum + balance, 0), failed };
      await flow.publish(closings, closed);
      return closed;
    },
  });

  return { statement, closing };
}
