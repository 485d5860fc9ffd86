// The one broker that all integration tests of a run share, unless they stop it or need other settings.
// Looked for in this order: PULSAR_URL, the broker of `npm run pulsar:up`, one started for this run.
import { missingTools } from './artifacts.js';
import { isHealthy } from './broker-process.js';
import { brokerThatIsUp } from './broker-up.js';
import type { PulsarAddress } from './broker-up.js';
import { startPulsar } from './real-pulsar.js';

export interface SharedBroker {
  /** undefined where there is none. */
  readonly address: PulsarAddress | undefined;
  /** In words for the output of a run: which broker it is, or why there is none. */
  readonly origin: string;
  /** Why tests cannot start a broker of their own; undefined where they can. */
  readonly cannotStart: string | undefined;
  /** Ends what was started for this run. */
  readonly release: () => Promise<void>;
}

/** @throws when PULSAR_URL names a broker that does not answer, or when one cannot start although the tools are there. */
export async function sharedBroker(env: NodeJS.ProcessEnv = process.env): Promise<SharedBroker> {
  const cannotStart = await missingTools();
  const release = () => Promise.resolve();

  const named = await brokerFromEnvironment(env);
  if (named !== undefined) return { address: named, origin: `${named.serviceUrl} (PULSAR_URL)`, cannotStart, release };

  const up = brokerThatIsUp();
  if (up !== undefined && (await isHealthy(up.adminUrl))) {
    return { address: up, origin: `${up.serviceUrl} (npm run pulsar:up)`, cannotStart, release };
  }

  if (cannotStart !== undefined) return { address: undefined, origin: cannotStart, cannotStart, release };

  const own = await startPulsar();
  const { serviceUrl, adminUrl, proxies } = own;
  return {
    address: { serviceUrl, adminUrl, proxies },
    origin: `${serviceUrl} (started for this run)`,
    cannotStart,
    release: () => own.stop(),
  };
}

async function brokerFromEnvironment(env: NodeJS.ProcessEnv): Promise<PulsarAddress | undefined> {
  const serviceUrl = env['PULSAR_URL'];
  if (serviceUrl === undefined || serviceUrl === '') return undefined;
  const up = brokerThatIsUp();
  if (up?.serviceUrl === serviceUrl) return up;

  // Both ports of a broker are known only to who configured it; 8080 is Pulsar's default.
  const adminUrl = env['PULSAR_ADMIN_URL'] ?? `http://${new URL(serviceUrl).hostname}:8080`;
  if (!(await isHealthy(adminUrl))) {
    throw new Error(`PULSAR_URL is ${serviceUrl}, but ${adminUrl} (PULSAR_ADMIN_URL) does not say that it is healthy`);
  }
  return { serviceUrl, adminUrl, proxies: [] };
}
