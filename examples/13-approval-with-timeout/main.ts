// Expenses that wait for people: one is approved at once, one is refused, for one the manager is on holiday, and one is
// forgotten by everybody. What would be days in an office are parts of a second here.
import { Runtime, consoleLogger } from 'pulsework';
import { Workflows, memoryWorkflowStore } from 'pulsework/workflow';
import { startFailed, topics, transport } from '../broker.js';
import type { Expense } from './approval.js';
import { expenseApproval } from './approval.js';

const REMIND_AFTER_MS = 750;

const EXPENSES: readonly Expense[] = [
  { id: 'E-1', amount: 40 },
  { id: 'E-2', amount: 900 },
  { id: 'E-3', amount: 75 },
  { id: 'E-4', amount: 12 },
];

/** Who answers what; whoever is not listed says nothing. */
const ANSWERS: Readonly<Record<string, { readonly who: string; readonly approved: boolean }>> = {
  'E-1': { who: 'manager', approved: true },
  'E-2': { who: 'manager', approved: false },
  'E-3': { who: 'director', approved: true },
};

const log: string[] = [];
let reminders = 0;
const approval = expenseApproval(
  {
    hold: async ({ id, amount }) => void log.push(`${id}: ${amount} held`),
    giveBack: async ({ id, amount }) => void log.push(`${id}: ${amount} given back`),
    payOut: async ({ id, amount }) => void log.push(`${id}: ${amount} paid out`),
    async ask(who, { id }) {
      log.push(`${id}: ${who} asked`);
      const answer = ANSWERS[id];
      // The signal of a real office comes from its web page.
      if (answer?.who === who)
        await workflows.signal(approval, id, 'decision', { by: who, approved: answer.approved }, { eventId: who });
    },
    async remind(_who, { id }) {
      if (id === 'E-4') reminders += 1;
    },
  },
  REMIND_AFTER_MS,
);

// A store in memory is for tests and for trying out: it is gone with the process.
const store = memoryWorkflowStore();
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const workflows = await Workflows.start({ runtime, store, definitions: [approval] });
const ends = await Promise.all(
  EXPENSES.map(async (expense) => {
    const handle = await workflows.start(approval, { id: expense.id, input: expense });
    return handle.result().then(
      ({ by }) => `approved by ${by}`,
      (error: unknown) => (error as Error).message,
    );
  }),
);

for (const [i, { id }] of EXPENSES.entries()) {
  for (const line of log.filter((each) => each.startsWith(id))) console.log(line);
  console.log(`${id}: ${ends[i]}`);
}
console.log(`reminders for E-4: ${reminders}`);
await runtime.drain();
