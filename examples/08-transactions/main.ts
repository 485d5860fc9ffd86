// A transfer makes two bookings, and between the two the network breaks. Without a transaction the first one is there twice in
// the end; with `transactional` both are there once.
import { Runtime, consoleLogger, defineHandler, fixedBackoff, success, topic } from 'pulsework';
import type { HandlerOptions, Plugin } from 'pulsework';
import { z } from 'zod';
import { startFailed, topics, transport } from '../broker.js';

const Transfer = z.object({ id: z.string(), from: z.string(), to: z.string(), cents: z.int() });
const Booking = z.object({ transfer: z.string(), account: z.string(), cents: z.int() });
type Booking = z.infer<typeof Booking>;

const TRANSFERS = [
  { id: 'T-1', from: 'Åsa', to: 'Bo', cents: 1_000 },
  { id: 'T-2', from: 'Bo', to: '陳', cents: 500 },
  { id: 'T-3', from: '陳', to: 'Åsa', cents: 2_500 },
];

/** A bank takes transfers and makes bookings; its ledger reads these. Two banks differ in `options` only. */
function bank(name: string, options: HandlerOptions) {
  const transfers = topic(`${name}-transfers`, { payload: Transfer });
  const bookings = topic(`${name}-bookings`, { payload: Booking });
  const booked: Booking[] = [];
  const teller = defineHandler({
    name: `${name}-teller`,
    source: transfers,
    subscription: 'teller',
    publishes: [bookings],
    redelivery: { backoff: fixedBackoff(100) },
    ...options,
    handle: ({ payload: { id: transfer, from, to, cents } }) =>
      success(
        bookings.message({ transfer, account: from, cents: -cents }),
        bookings.message({ transfer, account: to, cents }),
      ),
  });
  const ledger = defineHandler({
    name: `${name}-ledger`,
    source: bookings,
    subscription: 'ledger',
    handle: ({ payload }) => {
      booked.push(payload);
      onBooked();
      return success();
    },
  });
  return { name, transfers, booked, handlers: [teller, ledger] };
}

let onBooked: () => void = () => undefined;
const plain = bank('plain', {});
const transactional = bank('transactional', { transactional: true });

/** The second booking of T-2 does not get through the first time, at either bank. */
const broken = new Set<string>();
const brokenNetwork: Plugin = {
  name: 'broken-network',
  async aroundPublish(request, next) {
    const text = Buffer.from(request.message.payload ?? []).toString();
    const isIt = text.includes('"transfer":"T-2","account":"陳"');
    if (!isIt || broken.has(request.topic)) return next(request);
    broken.add(request.topic);
    throw new Error('the network is broken');
  },
};

const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names, which must have transactions
  topics,
  handlers: [...plain.handlers, ...transactional.handlers],
  plugins: [brokenNetwork],
  logger: consoleLogger({ level: 'error' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const allBooked = new Promise<void>((resolve) => {
  onBooked = () => {
    if (plain.booked.length >= 7 && transactional.booked.length >= 6) resolve();
  };
});
for (const { transfers } of [plain, transactional]) {
  // All of them or none, also outside handlers.
  await runtime.transaction(async (transaction) => {
    for (const transfer of TRANSFERS) await transaction.publisher(transfers).publish(transfer);
  });
}
await Promise.race([allBooked, runtime.closed]);
await runtime.drain();

for (const { name, booked } of [plain, transactional]) {
  const sum = booked.reduce((total, { cents }) => total + cents, 0);
  console.log(`${name}: ${TRANSFERS.length} transfers, ${booked.length} bookings, ${(sum / 100).toFixed(2)} in all`);
}
if (plain.booked.length !== 7 || transactional.booked.length !== 6) process.exitCode = 1;
