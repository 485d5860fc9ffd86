// Which broker and which Java class path the benchmarks of the wire use. Found out once by the parent and handed to the
// processes of the variants through the environment: these run compiled code in another folder.
import { fileURLToPath } from 'node:url';
import type * as Artifacts from '../support/real-pulsar/artifacts.js';
import type * as BrokerUp from '../support/real-pulsar/broker-up.js';

const SUPPORT = '../support/real-pulsar';

/** Why the benchmarks of the wire cannot run; undefined when they can, and their variants know where. */
export async function prepareBroker(): Promise<string | undefined> {
  // Loaded here: the compiled code has no such files, and its processes do not prepare.
  const { missingTools, brokerClassPath, javaPrograms } = (await import(`${SUPPORT}/artifacts.js`)) as typeof Artifacts;
  const { brokerThatIsUp } = (await import(`${SUPPORT}/broker-up.js`)) as typeof BrokerUp;
  const serviceUrl = process.env['PULSAR_URL'] ?? brokerThatIsUp()?.serviceUrl;
  if (serviceUrl === undefined) return 'no broker: npm run pulsar:up starts one, PULSAR_URL names one';
  const missing = await missingTools();
  if (missing !== undefined) return missing;
  const classPath = await brokerClassPath();
  process.env['PULSEWORK_BENCH_URL'] = serviceUrl;
  process.env['PULSEWORK_BENCH_CLASS_PATH'] = `${await javaPrograms(classPath)}:${classPath}`;
  process.env['PULSEWORK_BENCH_JAVA_LOG'] = fileURLToPath(new URL(`${SUPPORT}/log4j2-peer.xml`, import.meta.url));
  return undefined;
}

export function requiredVariable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: the parent sets it before it starts variants`);
  return value;
}
