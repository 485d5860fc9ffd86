// Handlers that take topics by pattern, on a real broker: topics that are there, topics that come while the runtime runs, and
// where their dead letters go.
import { setTimeout as sleep } from 'node:timers/promises';
import { Runtime, consoleLogger, defineHandler, poison, success } from 'pulsework';
import { wire } from 'pulsework/wire';
import { expect } from 'vitest';
import { textOf } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';

test('a handler gets what comes on the topics of its pattern, new ones too; a dead letter goes to that of its topic (S-42)', async ({
  pulsar,
}) => {
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  const base = pulsar.newTopic().replace('persistent://public/default/', '');
  const publish = async (topic: string, text: string): Promise<void> => {
    const publisher = await transport.publisher(topic);
    await publisher.publish({ payload: Buffer.from(JSON.stringify(text)), properties: {} }, 0);
  };
  await publish(`${base}-eu`, 'first');
  const seen: string[] = [];
  let told: () => void = () => undefined;
  const runtime = await Runtime.start({
    transport,
    logger: consoleLogger({ level: 'silent' }),
    handlers: [
      defineHandler({
        name: 'h',
        source: { pattern: new RegExp(`${base}-.+`) },
        subscription: 's',
        handle: ({ payload, topic }) => {
          seen.push(`${String(payload)} ${topic.slice(topic.lastIndexOf('-') + 1)}`);
          told();
          return payload === 'bad' ? poison('bad') : success();
        },
      }),
    ],
  });
  const until = async (count: number): Promise<void> => {
    while (seen.length < count) await new Promise<void>((resolve) => (told = resolve));
  };
  await until(1);
  await publish(`${base}-us`, 'second');
  await publish(`${base}-us`, 'bad');
  await until(3);
  expect(seen).toEqual(['first eu', 'second us', 'bad us']);
  const letters = await transport.subscribe({
    topics: [`${base}-us-s-DLQ`],
    subscription: 's',
    type: 'shared',
    initialPosition: 'earliest',
    prefetch: 1,
    consumerName: 'c',
  });
  const letter = await letters.receive(AbortSignal.timeout(10_000));
  expect(textOf(letter!)).toBe('"bad"');
  // Its own dead letters match the pattern, and are none of its topics.
  await sleep(1_000);
  expect([seen.length, [...(runtime.health()[0]?.topics ?? [])].sort()]).toEqual([
    3,
    [`persistent://public/default/${base}-eu`, `persistent://public/default/${base}-us`],
  ]);
  await runtime.drain();
});
