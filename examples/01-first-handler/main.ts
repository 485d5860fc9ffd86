// Orders from a file go through three service classes on the embedded broker. `npm start` takes orders.ndjson beside
// this file; `npm start -- FILE` another one, `npm start -- -` standard input.
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { PulseworkError, Runtime, consoleLogger } from 'pulsework';
import { startFailed, topics, transport } from '../broker.js';
import { InputError, linesOf, openInput } from './input.js';
import { Journal } from './journal.js';
import { orderLines } from './orders.js';
import { Billing, Bookkeeping, DeadLetterDesk } from './services.js';
import { summaryLines } from './summary.js';

const interrupted = new Promise<NodeJS.Signals>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
});
/** Of a process that a signal ended: 128 and its number. */
const EXIT_CODES: Partial<Record<string, number>> = { SIGINT: 130, SIGTERM: 143 };

async function main(path: string): Promise<void> {
  const input = await openInput(path);
  const journal = new Journal();
  const runtime = await Runtime.start({
    transport, // embedded, or the broker that PULSAR_URL names
    topics,
    handlers: [Billing, Bookkeeping, DeadLetterDesk],
    plugins: [journal],
    // The summary tells the story; a service leaves this out and gets one line of JSON per retry and per dead letter.
    logger: consoleLogger({ level: 'silent' }),
  }).catch(startFailed);
  console.log(`orders from ${path === '-' ? 'standard input' : basename(path)}`);
  try {
    const end = await Promise.race([handleAll(input, runtime, journal), interrupted]);
    const exitCode = EXIT_CODES[end];
    if (exitCode !== undefined) process.exitCode = exitCode;
    console.log(exitCode === undefined ? `${end}\n` : 'interrupted\n');
  } finally {
    await runtime.drain();
    input.destroy();
  }
  console.log(summaryLines(journal).join('\n'));
}

/** Publishes every line, then waits until each has ended and what followed from it has too. */
async function handleAll(input: Readable, runtime: Runtime, journal: Journal): Promise<string> {
  const published = await publishLines(input, runtime);
  await journal.untilEnded('Billing.charge', published);
  await journal.untilEnded('Bookkeeping.book', journal.count('Billing.charge', 'acknowledge'));
  await journal.untilEnded('DeadLetterDesk.keep', journal.count('Billing.charge', 'dead-letter'));
  return `${published} lines`;
}

async function publishLines(input: Readable, runtime: Runtime): Promise<number> {
  const publisher = runtime.publisher(orderLines);
  let published = 0;
  for await (const { number, text } of linesOf(input)) {
    try {
      await publisher.publish(text, { properties: { line: String(number) } });
    } catch (error) {
      if (!(error instanceof PulseworkError)) throw error;
      throw new InputError(`line ${number} cannot be published: ${error.message}`);
    }
    published += 1;
  }
  return published;
}

try {
  const [path = fileURLToPath(new URL('orders.ndjson', import.meta.url)), ...surplus] = process.argv.slice(2);
  if (surplus.length > 0) throw new InputError('give one file, or - for standard input');
  await main(path);
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
