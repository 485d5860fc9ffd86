// vitest's global set-up of the integration tests: one broker for the whole run, ended with it.
import type { TestProject } from 'vitest/node';
import { requireBroker } from './required-broker.js';
import { sharedBroker } from './shared-broker.js';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { address, origin, cannotStart, release } = await sharedBroker();
  requireBroker(address === undefined ? origin : cannotStart);
  console.log(`broker  ${origin}`);
  project.provide('pulsar', { address, origin, cannotStart });
  return release;
}
