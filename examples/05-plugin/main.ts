// Two plugins on one runtime: one around each run of a handler, one that observes settlements.
import { setTimeout as wait } from 'node:timers/promises';
import { Runtime, consoleLogger, defineHandler, fixedBackoff, poison, retry, skip, success, topic } from 'pulsework';
import { z } from 'zod';
import { startFailed, topics, transport } from '../broker.js';
import { HandlerTiming } from './handler-timing.js';
import { OutcomeCounter } from './outcome-counter.js';

const uploads = topic('uploads', { payload: z.object({ file: z.string(), bytes: z.int() }) });
const UPLOADS = [
  { file: 'naïve.pdf', bytes: 4_096 },
  { file: 'summer.jpg', bytes: 2_048 },
  { file: 'locked.jpg', bytes: 1_024 },
  { file: 'empty.jpg', bytes: 0 },
];
const redelivery = { backoff: fixedBackoff(50) };

const thumbnails = defineHandler({
  name: 'thumbnails',
  source: uploads,
  subscription: 'thumbnails',
  redelivery,
  handle: async ({ payload, attempt }) => {
    if (!payload.file.endsWith('.jpg')) return skip('not a picture');
    if (payload.bytes === 0) return poison(`${payload.file} is empty`);
    await wait(5);
    return payload.file === 'locked.jpg' && attempt < 3 ? retry(`${payload.file} is locked`) : success();
  },
});

const index = defineHandler({
  name: 'index',
  source: uploads,
  subscription: 'index',
  handle: () => success(),
});

const HANDLERS = [thumbnails, index];
let open = UPLOADS.length * HANDLERS.length;
let allEnded: () => void = () => undefined;
const ended = new Promise<void>((resolve) => (allEnded = resolve));

const timing = new HandlerTiming();
const counter = new OutcomeCounter(() => {
  open -= 1;
  if (open === 0) allEnded();
});
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  handlers: HANDLERS,
  plugins: [timing, counter],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

const publisher = runtime.publisher(uploads);
for (const upload of UPLOADS) await publisher.publish(upload);
await Promise.race([ended, runtime.closed]);
await runtime.drain();

// The times themselves differ from run to run, so only what they were taken of is printed.
for (const [handler, { runs, slowestMs }] of [...timing.times].sort(([a], [b]) => a.localeCompare(b))) {
  console.log(`${handler}: ${runs} runs measured${slowestMs > 0 ? '' : ', but no time passed'}`);
}
console.log('outcomes:');
for (const [outcome, count] of [...counter.counts].sort(([a], [b]) => a.localeCompare(b))) {
  console.log(`  ${outcome}: ${count}`);
}
console.log('dead letters:');
for (const line of counter.deadLetters.sort()) console.log(`  ${line}`);
