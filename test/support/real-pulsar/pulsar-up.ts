// Program behind `npm run pulsar:up`: starts the broker of this clone unless it is up, and says how to use it.
import { missingTools } from './artifacts.js';
import { START_LIMIT_MS, isHealthy } from './broker-process.js';
import { UP_FOLDER, brokerThatIsUp, rememberAddress } from './broker-up.js';
import type { PulsarAddress } from './broker-up.js';
import { withFileLock } from './file-lock.js';
import { startPulsar } from './real-pulsar.js';

const missing = (await healthyBroker()) === undefined ? await missingTools() : undefined;

if (missing !== undefined) {
  console.error(`failed: ${missing}`);
  process.exitCode = 1;
} else {
  // Two calls at once give the same broker.
  const up = await withFileLock(
    `${UP_FOLDER.path}.lock`,
    2 * START_LIMIT_MS,
    async () => (await healthyBroker()) ?? startOne(),
  );
  console.log(`export PULSAR_URL=${up.serviceUrl}`);
  console.log(`export PULSAR_ADMIN_URL=${up.adminUrl}`);
}

/** A process that lives is not enough: one whose storage has ended answers, and serves nobody. */
async function healthyBroker(): Promise<PulsarAddress | undefined> {
  const up = brokerThatIsUp();
  return up !== undefined && (await isHealthy(up.adminUrl)) ? up : undefined;
}

async function startOne(): Promise<PulsarAddress> {
  console.error('starting Pulsar (10 to 20 s; the first time some minutes, to download it) ...');
  UP_FOLDER.removeWithBroker();
  const pulsar = await startPulsar({}, { folder: UP_FOLDER, outlives: true });
  rememberAddress(pulsar);
  return pulsar;
}
