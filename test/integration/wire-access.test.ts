// Who may publish to a topic beside a publisher of the wire client, on a real broker.
import { expect } from 'vitest';
import { WireClient } from '../../src/wire.js';
import type { AccessMode, WirePublisher } from '../../src/wire.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

async function publisher({ serviceUrl }: SharedPulsar, topic: string, accessMode: AccessMode): Promise<WirePublisher> {
  const client = closedAfterTest(new WireClient({ serviceUrl }));
  return client.publisher(topic, { accessMode, properties: { version: '7' } });
}

const publish = (to: WirePublisher) => to.publish({ payload: Buffer.from('one'), properties: {} }, to.nextSequenceId());

test('who waits for exclusive access gets it when the one before has closed', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 2);
  const first = await publisher(pulsar, topic, 'wait-for-exclusive');
  let isOpen = false;
  const waiting = publisher(pulsar, topic, 'wait-for-exclusive').then((second) => {
    isOpen = true;
    return second;
  });
  await publish(first);
  expect(isOpen).toBe(false);

  await first.close();

  await expect(publish(await waiting)).resolves.toMatchObject({ partition: expect.any(Number) as number });
});

test('fencing shuts out who had the topic, for good', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  const first = await publisher(pulsar, topic, 'exclusive');
  await publish(first);

  const second = await publisher(pulsar, topic, 'exclusive-with-fencing');

  await expect(publish(first)).rejects.toMatchObject({ code: 'PRODUCER_FENCED', retriable: false });
  await expect(publish(first)).rejects.toMatchObject({ code: 'PRODUCER_FENCED' });
  await publish(second);
});
