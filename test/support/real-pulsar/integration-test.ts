// `test` for integration tests: what a test names of a real Pulsar it gets, or is skipped with the reason why not.
import { afterAll, inject, test as base } from 'vitest';
import { closedAfterTest } from '../closed-after-test.js';
import { startJavaPeer, startPythonPeer } from './client-peers.js';
import type { FaultyProxy } from './faulty-proxy.js';
import { runTool } from './processes.js';
import type { PulsarPeer } from './pulsar-peer.js';
import { requireBroker } from './required-broker.js';
import type { ProvidedPulsar } from './required-broker.js';
import { startPulsar } from './real-pulsar.js';
import type { PulsarOptions, RealPulsar } from './real-pulsar.js';
import { SharedPulsar } from './shared-pulsar.js';

export type { SharedPulsar } from './shared-pulsar.js';

export interface IntegrationFixtures {
  /** The broker that all tests share. Never stopped or reconfigured. */
  readonly pulsar: SharedPulsar;
  /** A proxy before the shared broker, without faults yet. */
  readonly proxy: FaultyProxy;
  /** Starts a broker that is the test's own and ends with it. One at a time. */
  readonly startBroker: (options?: PulsarOptions) => Promise<RealPulsar>;
  readonly java: PulsarPeer;
  readonly python: PulsarPeer;
}

export const test = base.extend<IntegrationFixtures>({
  pulsar: async ({ skip }, use) => {
    const { address, origin } = provided();
    if (address === undefined) return skipped(skip, origin);
    await use(new SharedPulsar(address));
  },
  proxy: async ({ pulsar, skip }, use) => {
    if (pulsar.address.proxies.length === 0)
      return skipped(skip, 'this broker has no place for a proxy: unset PULSAR_URL');
    // Closed after the clients that the test opens: one that is cut off asks for its port again, which is another test's by then.
    await use(closedAfterTest(await pulsar.proxy()));
  },
  startBroker: async ({ skip }, use) => {
    const { cannotStart } = provided();
    if (cannotStart !== undefined) return skipped(skip, cannotStart);
    const started: RealPulsar[] = [];
    await use(async (options) => {
      const broker = await startPulsar(options);
      started.push(broker);
      return broker;
    });
    for (const broker of started) await broker.stop();
  },
  java: async ({ skip }, use) => {
    const { cannotStart } = provided();
    if (cannotStart !== undefined) return skipped(skip, cannotStart);
    await useOpened(await peers.java(), use);
  },
  python: async ({ skip }, use) => {
    if (!(await hasPython()))
      return skipped(skip, 'not found: python3 with venv (the Python client is installed with it)');
    await useOpened(await peers.python(), use);
  },
});

/** The same with `broker`: one that this file starts for itself with these options, at the first test that names it. */
export function testWithBroker(options: PulsarOptions = {}) {
  const start = once(() => startPulsar(options));
  afterAll(async () => (await start.value?.catch(() => undefined))?.stop());
  return test.extend<{ readonly broker: RealPulsar }>({
    broker: async ({ skip }, use) => {
      const { cannotStart } = provided();
      if (cannotStart !== undefined) return skipped(skip, cannotStart);
      await use(await start());
    },
  });
}

/** The client goes on after the test: what it still had open would be attached again wherever a broker comes to its address. */
async function useOpened(client: PulsarPeer, use: (peer: PulsarPeer) => Promise<void>): Promise<void> {
  const peer = client.another();
  await use(peer);
  await peer.closeOpened();
}

/** One of each for all files of a worker, a Java process takes seconds to start: they end with the worker, as their input does. */
const peers = { java: once(startJavaPeer), python: once(startPythonPeer) };

const hasPython = once(() =>
  runTool('python3', ['-c', 'import venv, ensurepip']).then(
    () => true,
    () => false,
  ),
);

function provided(): ProvidedPulsar {
  const pulsar = inject('pulsar') as ProvidedPulsar | undefined;
  if (pulsar !== undefined) return pulsar;
  const missing = 'no broker: none was looked for (the global set-up of the integration projects did not run)';
  return { address: undefined, origin: missing, cannotStart: missing };
}

function skipped(skip: (reason: string) => never, reason: string): never {
  requireBroker(reason);
  return skip(reason);
}

interface Once<T> {
  (): Promise<T>;
  /** What the first call gave; undefined before. */
  readonly value: Promise<T> | undefined;
}

function once<T>(start: () => Promise<T>): Once<T> {
  let value: Promise<T> | undefined;
  const call = (): Promise<T> => (value ??= start());
  return Object.defineProperty(call, 'value', { get: () => value }) as Once<T>;
}
