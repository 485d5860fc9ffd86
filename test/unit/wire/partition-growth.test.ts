// Partitions that are added to a topic while it is published to and read, against a scripted server.
import { describe, expect, it, vi } from 'vitest';
import type { WireOptions } from '../../../src/wire.js';
import { startClient } from '../../support/scripted-consumer.js';
import { SocketClock } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const TOPIC = 'persistent://public/default/t';
const partition = (index: number): string => `${TOPIC}-partition-${index}`;

/** A server with a topic of two partitions, until `grow` says otherwise. */
async function start(script: Script = {}, options: Partial<WireOptions> = {}) {
  const clock = new SocketClock();
  let partitions = 2;
  const answers: Script = {
    PARTITIONED_METADATA: ({ requestId }, peer) =>
      peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions, response: 0 }),
    ...script,
  };
  // Virtual time runs far ahead of the sockets: no answer may be late for it.
  const patient = { keepAliveMs: 10_000_000, requestTimeoutMs: 10_000_000, connectTimeoutMs: 10_000_000 };
  const started = await startClient(answers, { clock, ...patient, ...options });
  return {
    ...started,
    clock,
    answers,
    grow: (to: number): void => void (partitions = to),
    /** Lets time pass until `holds`. */
    passing: (holds: () => void) =>
      vi.waitFor(
        () => {
          void clock.advanceBy(5_000);
          holds();
        },
        { timeout: 5_000, interval: 5 },
      ),
  };
}

describe('a subscription', () => {
  it('reads new partitions from their first message, whatever it began with', async () => {
    const { client, grow, passing, server } = await start();
    const subscription = await client.subscribe({ topics: [TOPIC], subscription: 's', initialPosition: 'latest' });
    grow(4);

    await passing(() => expect(subscription.topics()).toEqual([0, 1, 2, 3].map(partition)));

    const positions = server.received.flatMap(({ name, body }) =>
      name === 'SUBSCRIBE' ? [(body as { initialPosition?: number }).initialPosition] : [],
    );
    expect(positions).toEqual([0, 0, 1, 1]);
  });

  it('asks no more once it is closed, and never where it is told so', async () => {
    const { client, clock, server } = await start();
    const asked = (): number => server.received.filter(({ name }) => name === 'PARTITIONED_METADATA').length;
    const options = { topics: [TOPIC], subscription: 's' };
    await client.subscribe({ ...options, partitionsUpdateMs: false });
    await (await client.subscribe(options)).close();

    await clock.advanceBy(600_000);
    await client.publisher(TOPIC, { partitionsUpdateMs: 0 });

    expect(asked()).toBe(3);
  });
});

describe('a publisher', () => {
  const message = { payload: Buffer.from('one'), properties: {} };

  it('publishes to new partitions once all of them are there', async () => {
    const { client, grow, passing, server } = await start();
    const publisher = await client.publisher(TOPIC, { batching: false, routing: (_, partitions) => partitions - 1 });
    await expect(publisher.publish(message, publisher.nextSequenceId())).resolves.toMatchObject({ partition: 1 });
    grow(3);

    await passing(() => expect(publisher.topics()).toHaveLength(3));

    await expect(publisher.publish(message, publisher.nextSequenceId())).resolves.toMatchObject({ partition: 2 });
    expect(server.received.filter(({ name }) => name === 'PRODUCER')).toHaveLength(3);
  });

  it('keeps the partitions that it has when new ones cannot be opened, and tries again', async () => {
    const { client, grow, passing, answers, server, lines } = await start({}, { operationTimeoutMs: 0 });
    const publisher = await client.publisher(TOPIC);
    let refused = 0;
    answers.PRODUCER = ({ requestId, topic }, peer) =>
      topic === partition(3) && refused++ < 1
        ? peer.send('ERROR', { requestId, error: 6, message: 'not ready' })
        : peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p' });
    grow(4);

    await passing(() => expect(lines.map(({ text }) => text)).toContainEqual(expect.stringMatching('again later')));
    expect(publisher.topics()).toHaveLength(2);
    await server.command('CLOSE_PRODUCER');

    await passing(() => expect(publisher.topics()).toEqual([0, 1, 2, 3].map(partition)));
  });
});
