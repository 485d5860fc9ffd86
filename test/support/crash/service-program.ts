// A service in a process of its own, to be killed: `service-process.ts` starts it. The one argument is its settings as JSON.
// It tells on standard output, synchronously: what was told has left this process, however it ends.
import { writeSync } from 'node:fs';
import { Runtime } from 'pulsework';
import { fileAttemptStore } from 'pulsework/file';
import { wire } from 'pulsework/wire';
import type { ServiceSettings } from './service-jobs.js';
import { serviceHandler } from './service-jobs.js';

const STANDARD_OUTPUT = 1;
const DRAIN_MS = 2_000;

function tell(line: string): void {
  writeSync(STANDARD_OUTPUT, `${line}\n`);
}

const settings = JSON.parse(process.argv[2] ?? '') as ServiceSettings;
const { serviceUrl, attempts } = settings;
const runtime = await Runtime.start({
  transport: wire({ serviceUrl }),
  handlers: [serviceHandler(settings, tell)],
  ...(attempts === undefined ? {} : { attemptStore: fileAttemptStore({ path: attempts }) }),
});
process.once('SIGTERM', () => void runtime.drain({ deadlineMs: DRAIN_MS }));
tell('ready');
await runtime.closed;
