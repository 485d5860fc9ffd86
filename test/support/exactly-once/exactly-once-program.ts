// A service that works in transactions in a process of its own, to be killed. The one argument is its settings as JSON. It tells
// on standard output of each job that it has settled.
import { writeSync } from 'node:fs';
import { Runtime } from 'pulsework';
import { wire } from 'pulsework/wire';
import type { ExactlyOnceSettings } from './exactly-once-service.js';
import { exactlyOnceHandler } from './exactly-once-service.js';

const STANDARD_OUTPUT = 1;
/** As long as a broker may be gone. */
const START_TRIES = 30;

function tell(line: string): void {
  writeSync(STANDARD_OUTPUT, `${line}\n`);
}

const settings = JSON.parse(process.argv[2] ?? '') as ExactlyOnceSettings;

async function start(triesLeft: number): Promise<Runtime> {
  try {
    return await Runtime.start({
      transport: wire({ serviceUrl: settings.serviceUrl }),
      handlers: [exactlyOnceHandler(settings)],
      plugins: [
        { name: 'teller', onSettled: ({ settlement }) => void (settlement === 'acknowledge' && tell('settled')) },
      ],
    });
  } catch (error) {
    // As whatever starts services does it: the broker may be gone at the moment.
    if (triesLeft === 0) throw error;
    tell(`not started: ${String(error)}`);
    return start(triesLeft - 1);
  }
}

const runtime = await start(START_TRIES);
process.once('SIGTERM', () => void runtime.drain());
tell('ready');
await runtime.closed;
