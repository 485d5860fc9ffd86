// What a program of the official client drops without closing is collected as garbage, and closes what others still use. The
// adapter holds it. Alone in its file: the collector is run here.
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from 'pulsework';
import { systemClock } from 'pulsework';
import { pulsar as pulsarTransport } from 'pulsework/pulsar';
import type { OfficialModule } from 'pulsework/pulsar';
import { expect } from 'vitest';
import { specOf } from '../support/pulsar-client-stand-in/official-modules.js';
import { ScriptedClient, moduleMaking } from '../support/pulsar-client-stand-in/scripted-client.js';
import type { PulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { pulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { test } from '../support/real-pulsar/integration-test.js';

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;

/** Finalizers run in turns of their own, some time after a collection. */
async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    collect();
    await sleep(20);
  }
}

/** Timers refer to what they call: with this clock none of them keeps anything. */
const FORGETFUL_CLOCK: Clock = { ...systemClock, now: () => 0, setTimer: () => ({ cancel: () => undefined }) };

async function open(standIn: PulsarClientStandIn, serviceUrl: string, topic: string, clock = systemClock) {
  const transport = pulsarTransport({ module: standIn.module, serviceUrl, clock });
  return { transport, subscription: await transport.subscribe(specOf(topic)) };
}

/** The first client of a module stays anyway. */
async function openAndCloseFirst(module: OfficialModule, serviceUrl: string, topic: string): Promise<void> {
  const transport = pulsarTransport({ module, serviceUrl });
  await transport.publisher(topic);
  await transport.close();
}

test('client and producer stay open when nobody refers to them any more (R1)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const { module } = standIn;
  const topic = pulsar.newTopic();
  await openAndCloseFirst(module, pulsar.serviceUrl, topic);
  await (async () => {
    const publisher = await pulsarTransport({ module, serviceUrl: pulsar.serviceUrl }).publisher(topic);
    await publisher.publish({ payload: Buffer.from('a'), properties: {} }, 0);
  })();
  await collectGarbage();
  expect(standIn.collected).toEqual([]);
  await standIn.exit();
});

test('client and consumer stay open when nobody refers to them any more (R1)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const topic = pulsar.newTopic();
  await openAndCloseFirst(standIn.module, pulsar.serviceUrl, topic);
  await open(standIn, pulsar.serviceUrl, topic, FORGETFUL_CLOCK);
  await collectGarbage();
  expect([standIn.collected, standIn.violations]).toEqual([[], []]);
  await standIn.exit();
});

test('a consumer that closes while it receives ends nothing but itself (R1)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const { transport, subscription } = await open(standIn, pulsar.serviceUrl, pulsar.newTopic());
  expect(await subscription.receive(AbortSignal.timeout(50))).toBeUndefined();
  await transport.close();
  await collectGarbage();
  expect([standIn.collected, standIn.violations, standIn.openClients()]).toEqual([[], [], 0]);
});

test('what is closed goes, but no consumer before its last receive() has ended (R1)', async () => {
  const client = new ScriptedClient();
  const made = await (async () => {
    const transport = pulsarTransport({ client, module: moduleMaking(client) });
    const subscription = await transport.subscribe(specOf('t'));
    await transport.publisher('t');
    void subscription.receive(new AbortController().signal);
    client.letGo();
    await transport.close();
    const [consumer] = client.consumers.splice(0);
    const [producer] = client.producers.splice(0);
    // As the addon has it: not the consumer, but who waits for its answer.
    return { consumer: new WeakRef(consumer!), producer: new WeakRef(producer!), receives: consumer!.receives.open };
  })();
  await collectGarbage();
  expect([made.consumer.deref() === undefined, made.producer.deref()]).toEqual([false, undefined]);
  made.receives.pop()?.reject(new Error('Failed to receive message: AlreadyClosed'));
  await collectGarbage();
  expect(made.consumer.deref()).toBeUndefined();
});

test('the first client of the process stays for its log level, also when it was closed (R11)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  await (async () => {
    const transport = pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl, logger });
    await transport.publisher(pulsar.newTopic());
    await transport.close();
  })();
  await collectGarbage();
  expect(standIn.violations).toEqual([]);
});
