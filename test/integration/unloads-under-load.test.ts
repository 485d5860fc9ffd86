// Four unloads of a topic while 600 of its messages are handled: in the process each is handled once, and in the end the
// subscription holds nothing. On the wire client and on the adapter for the official one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Transport } from 'pulsework';
import { Runtime, defineHandler, success } from 'pulsework';
import { pulsar as pulsarTransport } from 'pulsework/pulsar';
import { wire } from 'pulsework/wire';
import { describe, expect } from 'vitest';
import { realModule } from '../support/pulsar-client-stand-in/official-modules.js';
import { pulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';

const MESSAGES = 600;
/** After how many runs each unload begins. */
const UNLOADS_AT = [100, 220, 340, 460] as const;
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

async function publishAll({ serviceUrl }: SharedPulsar, topic: string): Promise<void> {
  const transport = wire({ serviceUrl });
  const publisher = await transport.client.publisher(topic, { batching: false });
  const sending = Array.from({ length: MESSAGES }, (_, i) =>
    publisher.publish({ payload: Buffer.from(String(i)), properties: {} }, publisher.nextSequenceId()),
  );
  await Promise.all(sending);
  await transport.close();
}

async function runWithUnloads(pulsar: SharedPulsar, transport: Transport): Promise<void> {
  const topic = pulsar.newTopic();
  await publishAll(pulsar, topic);
  const runs = new Map<unknown, number>();
  let done: () => void = () => undefined;
  const isDone = new Promise<void>((resolve) => (done = resolve));
  let started = 0;
  const unloading: Promise<unknown>[] = [];
  const runtime = await Runtime.start({
    transport,
    logger: SILENT,
    handlers: [
      defineHandler({
        name: 'h',
        source: topic,
        subscription: 's',
        concurrency: 16,
        handle: async ({ payload }) => {
          runs.set(payload, (runs.get(payload) ?? 0) + 1);
          started += 1;
          if (UNLOADS_AT.includes(started as 100)) unloading.push(pulsar.admin.unload(topic));
          await sleep(5 + (Number(payload) % 7) * 5);
          if (runs.size === MESSAGES) done();
          return success();
        },
      }),
    ],
  });
  await isDone;
  await Promise.all(unloading);
  expect(unloading).toHaveLength(UNLOADS_AT.length);
  const backlog = async () => (await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog;
  // Copies may still be on their way: each is acknowledged again.
  for (const giveUpAtMs = Date.now() + 20_000; (await backlog()) !== 0 && Date.now() < giveUpAtMs;) await sleep(100);
  await runtime.drain();
  expect([...runs].filter(([, count]) => count !== 1)).toEqual([]);
  expect(await backlog()).toBe(0);
}

describe.concurrent('600 messages with 4 unloads are handled once each, and nothing is left', () => {
  test('over the wire', async ({ pulsar }) => {
    await runWithUnloads(pulsar, wire({ serviceUrl: pulsar.serviceUrl }));
  });

  test('over the official client, on its stand-in (R7)', async ({ pulsar }) => {
    const standIn = pulsarClientStandIn();
    await runWithUnloads(pulsar, pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl }));
    expect(standIn.violations).toEqual([]);
  });

  const real = realModule;
  test('over the official client, on the real addon (R7)', async ({ pulsar, skip }) => {
    if (typeof real === 'string') return skip(real);
    await runWithUnloads(pulsar, pulsarTransport({ module: real, serviceUrl: pulsar.serviceUrl }));
  });
});
