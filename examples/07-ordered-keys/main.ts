// Order per key that survives failure: one account whose booking fails for a while, and one whose booking never can be
// made, among healthy ones.
import { Runtime, consoleLogger } from 'pulsework';
import type { SettlementReport } from 'pulsework';
import { startFailed, topics, transport } from '../broker.js';
import { Ledger, bookings } from './services.js';

const ACCOUNTS = ['alice', 'bob', 'carol', 'dave'];
const EACH = 3;

const ledger = new Ledger();
const settled: SettlementReport[] = [];
let onSettled: () => void = () => undefined;

const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [Ledger],
  resolve: () => ledger,
  logger: consoleLogger({ level: 'silent' }),
  plugins: [
    {
      name: 'watch',
      onSettled: (report) => {
        settled.push(report);
        onSettled();
      },
    },
  ],
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const publisher = runtime.publisher(bookings);
for (let number = 1; number <= EACH; number++) {
  for (const account of ACCOUNTS) {
    const toAccount = account === 'carol' && number === 2 ? 'nowhere' : 'savings';
    await publisher.publish({ account, number, toAccount }, { key: account });
  }
}

/** Resolves once what was settled is so. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Promise.race([new Promise<void>((resolve) => (onSettled = resolve)), runtime.closed]);
}

const subscription = runtime.subscription('ledger', bookings.name);
const failedRuns = () => settled.filter(({ key, outcome }) => key === 'bob' && outcome === 'retry-after').length;
await until(
  () => ledger.booked.length === 7 && settled.some(({ outcome }) => outcome === 'poison') && failedRuns() > 1,
);
console.log(`booked while bob's account is locked: ${ledger.booked.toSorted().join(', ')}`);

ledger.locked.delete('bob');
await until(() => ledger.booked.includes('bob 3'));
for (const { key, cause, reason } of subscription.blockedKeys())
  console.log(`${String(key)} waits for a person: ${cause}, ${reason}`);

// A person has looked at it: the booking becomes a dead letter, and the account goes on.
subscription.skip('carol');
await until(() => ledger.booked.includes('carol 3'));
await runtime.drain();

for (const account of ACCOUNTS) console.log(`${account}: ${numbersOf(account).join(', ')}`);
console.log(`dead letters: ${settled.filter(({ settlement }) => settlement === 'dead-letter').length}`);
const inOrder = ACCOUNTS.every((account) => numbersOf(account).every((number, i, all) => number > (all[i - 1] ?? 0)));
console.log(`every account in order: ${inOrder ? 'yes' : 'no'}`);
if (!inOrder) process.exitCode = 1;

function numbersOf(account: string): readonly number[] {
  const own = ledger.booked.filter((entry) => entry.startsWith(`${account} `));
  return own.map((entry) => Number(entry.split(' ')[1]));
}
