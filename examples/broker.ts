// Where the examples run: on a broker in this process or, when PULSAR_URL is set, on that real one.
import { randomUUID } from 'node:crypto';
import { PulseworkError } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { wire } from 'pulsework/wire';

const serviceUrl = process.env['PULSAR_URL'] ?? '';
/** The processes that an example starts are a part of its run. */
const startedBy = process.env['EXAMPLE_RUN'];
const run = startedBy ?? randomUUID();
process.env['EXAMPLE_RUN'] = run;

export const transport = serviceUrl === '' ? embedded() : wire({ serviceUrl });

/** A real broker keeps what other runs left in its topics, so each run there has topics of its own. They stay on it. */
export const topics = serviceUrl === '' ? undefined : (name: string) => `example-${run}-${name}`;

// Not on standard output, which is the same on every broker.
if (serviceUrl !== '' && startedBy === undefined) console.error(`connecting to ${serviceUrl}`);

/** For `Runtime.start(...).catch`: a broker that cannot be used is said in one line. Other errors are thrown on. */
export function startFailed(error: unknown): never {
  if (serviceUrl === '' || !(error instanceof PulseworkError) || error.code !== 'START_FAILED') throw error;
  console.error(`cannot start on ${serviceUrl}: ${error.message}`);
  process.exit(1);
}
