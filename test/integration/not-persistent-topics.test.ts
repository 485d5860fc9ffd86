// A handler of a topic that is not persistent, on a real broker: every message comes with the place 0:0, and none again.
import { Runtime, consoleLogger, defineHandler, fixedBackoff, retry, success, topic } from 'pulsework';
import { wire } from 'pulsework/wire';
import { expect } from 'vitest';
import { test } from '../support/real-pulsar/integration-test.js';

test('a handler of a topic that is not persistent gets every message, and what it retries once more', async ({
  pulsar,
}) => {
  const name = pulsar.newTopic().replace('persistent://', 'non-persistent://');
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  const seen: string[] = [];
  let told: () => void = () => undefined;
  const runtime = await Runtime.start({
    transport,
    logger: consoleLogger({ level: 'silent' }),
    handlers: [
      defineHandler({
        name: 'h',
        source: topic<string>(name),
        subscription: 's',
        redelivery: { maxDeliveries: 3, backoff: fixedBackoff(10) },
        handle: ({ payload, attempt }) => {
          seen.push(`${payload} ${attempt}`);
          told();
          return payload === 'b' && attempt === 1 ? retry('once more') : success();
        },
      }),
    ],
  });
  const publisher = await transport.publisher(name);
  for (const text of ['a', 'b', 'c']) {
    const payload = Buffer.from(JSON.stringify(text));
    await publisher.publish({ payload, properties: {} }, publisher.nextSequenceId());
  }
  while (seen.length < 4) await new Promise<void>((resolve) => (told = resolve));
  await runtime.close();

  expect(seen.toSorted()).toEqual(['a 1', 'b 1', 'b 2', 'c 1']);
});
