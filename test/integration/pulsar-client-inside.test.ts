// What the adapter for the official client does on the inside, as only its stand-in can tell: what it asks for and how often,
// with which options, and what an exit loses.
import { setTimeout as sleep } from 'node:timers/promises';
import { Runtime, defineHandler, fixedBackoff, retry, success } from 'pulsework';
import { pulsar as pulsarTransport } from 'pulsework/pulsar';
import { expect } from 'vitest';
import {
  SILENT,
  leftOn,
  message,
  numbers,
  publishAll,
  take,
  takeUntilQuiet,
} from '../support/pulsar-client-stand-in/message-kit.js';
import { specOf } from '../support/pulsar-client-stand-in/official-modules.js';
import { pulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { test } from '../support/real-pulsar/integration-test.js';

test('never more than one receive() is under way, nothing is asked back that need not be, and options are as they must be (R2, R3, R9)', async ({
  pulsar,
}) => {
  const standIn = pulsarClientStandIn();
  const transport = pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl });
  const topic = pulsar.newTopic();
  const subscription = await transport.subscribe(specOf(topic, { prefetch: 7 }));
  await publishAll(
    await transport.publisher(topic),
    numbers(20).map((text) => message(text)),
  );
  for (let i = 0; i < 20; i++) {
    await subscription.receive(AbortSignal.timeout(1));
  }
  await takeUntilQuiet(subscription);
  await transport.close();
  expect(standIn.consumers.map(({ mostPending, nacked }) => [mostPending, nacked])).toEqual([[1, 0]]);
  const [consumer, producer] = standIn.configs;
  expect(consumer).toEqual({
    topic,
    subscription: 's',
    subscriptionType: 'Shared',
    subscriptionInitialPosition: 'Earliest',
    receiverQueueSize: 7,
    consumerName: 'c',
    nAckRedeliverTimeoutMs: 102,
    ackTimeoutMs: 0,
    batchIndexAckEnabled: true,
  });
  expect(producer).toMatchObject({
    batchingEnabled: false,
    blockIfQueueFull: false,
    hashingScheme: 'JavaStringHash',
  });
});

test('an exit right after an acknowledgement loses it, and after a close it does not (R1)', async ({ pulsar }) => {
  for (const closes of [false, true]) {
    const standIn = pulsarClientStandIn();
    const transport = pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    await (await transport.publisher(topic)).publish(message('a'), 0);
    const [a] = await take(subscription, 1);
    await subscription.acknowledge([a!.id]);
    if (closes) await subscription.close();
    await standIn.exit();
    expect(await leftOn(pulsar, topic, closes ? 0 : 1)).toEqual(closes ? [] : ['a']);
    await transport.close();
  }
});

test('retries on Shared are asked back in bursts, and those in place are not asked for at all (R4, R10)', async ({
  pulsar,
}) => {
  const standIn = pulsarClientStandIn();
  for (const [type, asked] of [
    ['shared', 1],
    ['key-shared', 0],
  ] as const) {
    const transport = pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    let done: () => void = () => undefined;
    const isDone = new Promise<void>((resolve) => (done = resolve));
    const runtime = await Runtime.start({
      transport,
      logger: SILENT,
      handlers: [
        defineHandler({
          name: 'h',
          source: topic,
          subscription: 's',
          type,
          ...(type === 'key-shared' && { ordering: 'key' as const }),
          redelivery: { maxDeliveries: 5, backoff: fixedBackoff(50) },
          handle: ({ attempt }) => {
            if (attempt === 1) return retry();
            done();
            return success();
          },
        }),
      ],
    });
    await (await transport.publisher(topic)).publish(message('1', { key: 'k' }), 0);
    await isDone;
    await runtime.drain();
    expect(standIn.consumers.at(-1)?.nacked, type).toBe(asked);
  }
});

test('bursts of redelivery requests are further apart than the tick of the client, 34 ms (R4)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const transport = pulsarTransport({ module: standIn.module, serviceUrl: pulsar.serviceUrl });
  const topic = pulsar.newTopic();
  const subscription = await transport.subscribe(specOf(topic));
  await publishAll(
    await transport.publisher(topic),
    numbers(40).map((text) => message(text)),
  );
  const asked: Promise<void>[] = [];
  for (const { id } of await take(subscription, 40)) {
    asked.push(subscription.redeliver([id]));
    await sleep(5);
  }
  await Promise.all(asked);
  const [consumer] = standIn.consumers;
  expect([consumer!.nacked, consumer!.closestBurstsMs > 40]).toEqual([40, true]);
  await transport.close();
});

test('a failing token supplier and a throwing logger stay in this process (R11)', async ({ pulsar }) => {
  const standIn = pulsarClientStandIn();
  const lines: string[] = [];
  const logger = {
    ...SILENT,
    warn: (line: string) => void lines.push(line),
    info: () => {
      throw new Error('this logger throws');
    },
  };
  const token = (): string => {
    throw new Error('no token today');
  };
  const transport = pulsarTransport({
    module: standIn.module,
    serviceUrl: pulsar.serviceUrl,
    logger,
    authentication: { method: 'token', token },
  });
  await (await transport.publisher(pulsar.newTopic())).publish(message('a'), 0);
  await transport.close();
  expect(lines[0]).toContain('token supplier failed');
  expect(standIn.violations).toEqual([]);
});
