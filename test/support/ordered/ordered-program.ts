// A service that keeps order per key in a process of its own, to be killed. The one argument is its settings as JSON. It
// tells on standard output, synchronously, and stamps each line with a clock that all processes of a machine share.
import { writeSync } from 'node:fs';
import { Runtime } from 'pulsework';
import { wire } from 'pulsework/wire';
import type { OrderedSettings } from './ordered-jobs.js';
import { orderedHandler, settlementTeller } from './ordered-jobs.js';

const STANDARD_OUTPUT = 1;
/** Longer than any run takes on a busy machine. */
const DRAIN_MS = 20_000;

function tell(line: string): void {
  writeSync(STANDARD_OUTPUT, `${process.hrtime.bigint()} ${line}\n`);
}

const settings = JSON.parse(process.argv[2] ?? '') as OrderedSettings;
const runtime = await Runtime.start({
  transport: wire({ serviceUrl: settings.serviceUrl }),
  handlers: [orderedHandler(settings, tell)],
  plugins: [settlementTeller(tell)],
});
process.once('SIGTERM', () => void runtime.drain({ deadlineMs: DRAIN_MS }));
// Runs may have been told before; from here on SIGTERM drains.
writeSync(STANDARD_OUTPUT, 'ready\n');
await runtime.closed;
