// Which broker and which Java class path the benchmarks of the wire use. Found out once by the parent and handed to the
// processes of the variants through the environment: these run compiled code in another folder.
import { fileURLToPath } from 'node:url';
import type * as Artifacts from '../support/real-pulsar/artifacts.js';
import type * as RealPulsar from '../support/real-pulsar/real-pulsar.js';

const SUPPORT = '../support/real-pulsar';
/** The broker of the tests has 192: gigabytes of messages in a few minutes end it. */
const BROKER_MEMORY_MB = 1_024;
const OFFICIAL_CLIENT = 'pulsar-client';

let prepared: Promise<string | undefined> | undefined;

/**
 * Why the benchmarks of the wire cannot run; undefined when they can, and their variants know where: at `PULSAR_URL`, or
 * on a broker of their own, which ends with this process.
 */
export function prepareBroker(): Promise<string | undefined> {
  return (prepared ??= prepareOnce());
}

async function prepareOnce(): Promise<string | undefined> {
  // Loaded here: the compiled code has no such files, and its processes do not prepare.
  const { missingTools, brokerClassPath, javaPrograms } = (await import(`${SUPPORT}/artifacts.js`)) as typeof Artifacts;
  const missing = await missingTools();
  if (missing !== undefined) return missing;
  const classPath = await brokerClassPath();
  process.env['PULSEWORK_BENCH_URL'] = process.env['PULSAR_URL'] ?? (await ownBroker());
  process.env['PULSEWORK_BENCH_CLASS_PATH'] = `${await javaPrograms(classPath)}:${classPath}`;
  process.env['PULSEWORK_BENCH_JAVA_LOG'] = fileURLToPath(new URL(`${SUPPORT}/log4j2-peer.xml`, import.meta.url));
  console.error(await aboutOfficialClient());
  return undefined;
}

async function ownBroker(transactions = false): Promise<string> {
  const { startPulsar } = (await import(`${SUPPORT}/real-pulsar.js`)) as typeof RealPulsar;
  console.error('starting a broker for the benchmarks of the wire');
  return (await startPulsar({ memoryMb: BROKER_MEMORY_MB, proxies: 0, transactions })).serviceUrl;
}

/** The same with transactions, which the others need not pay for: always a broker of its own. */
export async function prepareTransactionalBroker(): Promise<string | undefined> {
  const { missingTools } = (await import(`${SUPPORT}/artifacts.js`)) as typeof Artifacts;
  const missing = await missingTools();
  if (missing !== undefined) return missing;
  process.env['PULSEWORK_BENCH_TRANSACTIONS_URL'] = await ownBroker(true);
  return undefined;
}

async function aboutOfficialClient(): Promise<string> {
  try {
    await import(OFFICIAL_CLIENT);
    return `${OFFICIAL_CLIENT} (the official Node client) loads here, but is not measured yet`;
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
    return `${OFFICIAL_CLIENT} (the official Node client) is not measured: it does not load here (${reason})`;
  }
}

export function requiredVariable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: the parent sets it before it starts variants`);
  return value;
}
