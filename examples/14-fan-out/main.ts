// A month of 40 accounts is closed: each is a workflow, done at the same time as the others. The books are busy once, and one
// account does not add up.
import { Runtime, consoleLogger, poison } from 'pulsework';
import { Workflows, memoryWorkflowStore } from 'pulsework/workflow';
import { startFailed, topics, transport } from '../broker.js';
import { monthClosing } from './closing.js';

const MONTH = '2026-10';
const ACCOUNTS = Array.from({ length: 40 }, (_, n) => `acc-${String(n + 1).padStart(2, '0')}`);
const BROKEN = 'acc-13';

const log: string[] = [];
const written = new Map<string, number>();
let isBusy = true;
let atOnce = 0;
let most = 0;

const { statement, closing } = monthClosing({
  lock: async (month) => void log.push(`${month} is locked`),
  unlock: async (month) => void log.push(`${month} is unlocked`),
  async add(_month, account) {
    if (account === ACCOUNTS[0] && isBusy) {
      isBusy = false;
      throw new Error('the books are busy');
    }
    if (account === BROKEN) return poison('it does not add up');
    atOnce += 1;
    most = Math.max(most, atOnce);
    await new Promise((resolve) => setTimeout(resolve, 100));
    atOnce -= 1;
    return Number(account.slice(4)) * 10;
  },
  write: async (_month, account, balance) => void written.set(account, balance),
  discard: async (_month, account) => void written.delete(account),
});

// A store in memory is for tests and for trying out: it is gone with the process.
const store = memoryWorkflowStore();
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const workflows = await Workflows.start({ runtime, store, definitions: [closing, statement] });
const handle = await workflows.start(closing, { id: MONTH, input: { month: MONTH, accounts: ACCOUNTS } });
const { total, failed } = await handle.result();

for (const line of log) console.log(line);
console.log(`total ${total} of ${written.size} statements, not closed: ${failed.join(', ')}`);
console.log(most > 5 ? 'many at the same time' : `${most} at the same time`);
for (const status of ['completed', 'failed'] as const) {
  const children = await workflows.list({ name: 'statement', status, limit: 100 });
  console.log(`statements ${status}: ${children.length}`);
}
const reason = await workflows
  .handle(statement, `${MONTH}/${BROKEN}`)
  .result()
  .catch((error: unknown) => ((error as Error).cause as Error).message);
console.log(`${BROKEN}: ${reason}`);
await runtime.drain();
