// `npm run pulsar:up`: the broker that stays until `npm run pulsar:down`. Its folder is in the clone, so that each
// clone has its own; a clone that is removed takes its broker with it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BrokerFolder } from './broker-folder.js';
import type { ProxyPorts } from './broker-settings.js';

/** What a test needs to know of a broker. */
export interface PulsarAddress {
  readonly serviceUrl: string;
  readonly adminUrl: string;
  /** Where a proxy can stand in front of it; none at a broker that this harness did not start. */
  readonly proxies: readonly ProxyPorts[];
}

export const UP_FOLDER = new BrokerFolder(fileURLToPath(new URL('../../../.pulsar/up', import.meta.url)));

const ADDRESS_FILE = join(UP_FOLDER.path, 'address.json');

/** The broker that is up; undefined when none is. */
export function brokerThatIsUp(): PulsarAddress | undefined {
  if (UP_FOLDER.runningPid === undefined || !existsSync(ADDRESS_FILE)) return undefined;
  return JSON.parse(readFileSync(ADDRESS_FILE, 'utf8')) as PulsarAddress;
}

export function rememberAddress({ serviceUrl, adminUrl, proxies }: PulsarAddress): void {
  writeFileSync(ADDRESS_FILE, JSON.stringify({ serviceUrl, adminUrl, proxies }));
}
