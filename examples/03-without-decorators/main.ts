// Plain functions as handlers, and order per key: bookings of one account are applied one after the other, even when one
// of them has to wait for its next attempt. Other accounts go on meanwhile.
import { Runtime, consoleLogger, defineHandler, fixedBackoff, retry, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { z } from 'zod';
import { startFailed, topics, transport } from '../broker.js';

const Booking = z.object({ account: z.string(), step: z.int(), amountCents: z.int() });
type Booking = z.infer<typeof Booking>;

const bookings = topic('bookings', { payload: Booking });
const ACCOUNTS = ['Åsa', 'Bo', '陳', 'Dimitra'];
const STEPS = [1, 2, 3, 4];
const total = ACCOUNTS.length * STEPS.length;

/** What was applied, in the order in which it happened. */
const applied: Booking[] = [];
let onApplied: () => void = () => undefined;

const ofOthers = (list: readonly Booking[]): number => list.filter(({ account }) => account !== 'Bo').length;

/** The second booking of Bo finds its row locked: at first, and for as long as other accounts have anything to book. */
function apply({ payload: booking, attempt }: Delivery<Booking>): Outcome {
  const isLocked = attempt === 1 || ofOthers(applied) < total - STEPS.length;
  if (booking.account === 'Bo' && booking.step === 2 && isLocked) return retry('the row is locked');
  applied.push(booking);
  onApplied();
  return success();
}

const ledger = defineHandler({
  name: 'ledger',
  source: bookings,
  subscription: 'ledger',
  type: 'key-shared', // a key belongs to one process at a time
  ordering: 'key', // and has one run at a time, in order, retries included
  concurrency: 8,
  redelivery: { maxDeliveries: 100, backoff: fixedBackoff(400) },
  handle: apply,
});

const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: [ledger],
  logger: consoleLogger({ level: 'warn' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const allApplied = new Promise<void>((resolve) => {
  onApplied = () => {
    if (applied.length === total) resolve();
  };
});
const publisher = runtime.publisher(bookings);
for (const step of STEPS) {
  for (const account of ACCOUNTS) {
    await publisher.publish({ account, step, amountCents: step * 100 }, { key: account });
  }
}
await Promise.race([allApplied, runtime.closed]);
await runtime.drain();

for (const account of ACCOUNTS) {
  const steps = applied.filter((booking) => booking.account === account).map(({ step }) => step);
  console.log(`${account}: ${steps.join(', ')}`);
  if (steps.join() !== STEPS.join()) process.exitCode = 1;
}
const waited = applied.findIndex(({ account, step }) => account === 'Bo' && step === 2);
const others = ofOthers(applied.slice(0, waited));
console.log(`bookings of other accounts applied while Bo's second one waited: all ${others} of them`);
if (others !== total - STEPS.length) process.exitCode = 1;
