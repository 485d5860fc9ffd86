// vitest's global set-up of the tests that start brokers of their own: only looks whether they can.
import type { TestProject } from 'vitest/node';
import { missingTools } from './artifacts.js';
import { requireBroker } from './required-broker.js';

export default async function setUp(project: TestProject): Promise<void> {
  const cannotStart = await missingTools();
  requireBroker(cannotStart);
  project.provide('pulsar', { address: undefined, origin: 'tests here start their own broker', cannotStart });
}
