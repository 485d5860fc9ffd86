// The same scenarios as on the embedded broker, over the wire on a real Pulsar: the exported spans equal the same files.
// Nothing is left out for it: ids and addresses are what those files have no room for anyway. Only the other test writes them.
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { afterEach, expect, vi } from 'vitest';
import { Runtime } from 'pulsework';
import type { Logger } from 'pulsework';
import { openTelemetry } from 'pulsework/otel';
import { wire } from 'pulsework/wire';
import type { TracedPlace } from '../scenario/telemetry/trace-scenarios.js';
import { traceScenarios } from '../scenario/telemetry/trace-scenarios.js';
import { OtelSdk } from '../support/otel-sdk.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { traceTree } from '../support/trace-tree.js';

/** Many times what the slowest scenario takes: two waits of a second and a second request. */
const LIMIT_MS = 60_000;

const until = (condition: () => boolean): Promise<unknown> =>
  vi.waitUntil(condition, { timeout: LIMIT_MS, interval: 10 });

/** A namespace of its own, so that topics have the names that they have everywhere. */
class WirePlace implements TracedPlace {
  readonly namespace = `public/traces-${randomUUID()}`;
  /** Log lines about telemetry: there must be none. */
  readonly complaints: string[] = [];
  readonly #pulsar: SharedPulsar;
  readonly #runtimes: Runtime[] = [];

  constructor(pulsar: SharedPulsar) {
    this.#pulsar = pulsar;
  }

  async start({ handlers }: Parameters<TracedPlace['start']>[0]): Promise<Runtime> {
    const { hostname, port } = new URL(this.#pulsar.serviceUrl);
    const runtime = await Runtime.start({
      transport: wire({ serviceUrl: this.#pulsar.serviceUrl }),
      telemetry: openTelemetry({ serverAddress: hostname, serverPort: Number(port) }),
      namespace: this.namespace,
      logger: this.#logger(),
      random: () => 0.5,
      handlers,
    });
    this.#runtimes.push(runtime);
    return runtime;
  }

  async until(condition: () => boolean): Promise<void> {
    await until(condition);
  }

  async drain(runtime: Runtime, deadlineMs: number): Promise<void> {
    await runtime.drain({ deadlineMs });
  }

  async end(): Promise<void> {
    for (const runtime of this.#runtimes) await runtime.drain({ deadlineMs: 0 });
  }

  #logger(): Logger {
    const look = (message: string): void => {
      if (/telemetry/i.test(message)) this.complaints.push(message);
    };
    return { debug: look, info: look, warn: look, error: look };
  }
}

let cleanUp: () => Promise<unknown> = async () => undefined;
afterEach(async () => {
  OtelSdk.unregister();
  await cleanUp();
  cleanUp = async () => undefined;
});

test.for(traceScenarios)('$name', async (scenario, { pulsar }) => {
  const sdk = new OtelSdk();
  sdk.register();
  const place = new WirePlace(pulsar);
  await pulsar.admin.createNamespace(place.namespace);
  cleanUp = async () => {
    await place.end();
    await pulsar.admin.deleteNamespace(place.namespace);
  };

  await scenario.run(place);
  // The last run is open until its settlement has come to its end: a drain must not cut that short.
  await until(() => sdk.spans.length === sdk.started);
  await place.end();

  const rename = (text: string): string => text.replaceAll(place.namespace, 'public/default');
  const expected = new URL(`../scenario/telemetry/expected/${scenario.name}.txt`, import.meta.url);
  expect(sdk.spans).toHaveLength(sdk.started);
  expect(place.complaints).toEqual([]);
  expect(traceTree(sdk.spans, { startOrder: sdk.startOrder, rename })).toBe(readFileSync(expected, 'utf8'));
});
