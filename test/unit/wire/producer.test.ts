// The publisher against a scripted server: registration, receipts, refusals and losses that a real broker does not
// produce on demand.
import { describe, expect, it } from 'vitest';
import type { WirePublisherOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import type { WireOptions } from '../../../src/transports/wire/wire-options.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';
import type { Peer, Script } from '../../support/wire-server.js';
import { closedAfterTest } from '../../support/closed-after-test.js';

const TOPIC = 'persistent://public/default/t';
const hello = { payload: Buffer.from('hello'), properties: {} };
const UNBATCHED: WirePublisherOptions = { batching: false };
async function start(script: Script = {}, options: Partial<WireOptions> = {}) {
  const server = closedAfterTest(await WireServer.start(script));
  const client = closedAfterTest(
    new WireClient({ serviceUrl: server.url, random: () => 0.5, reconnectMinMs: 1, ...options }),
  );
  return { server, client };
}

function stored(peer: Peer, { producerId, sequenceId }: { producerId: number; sequenceId: number }): void {
  peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: sequenceId } });
}

const count = (server: WireServer, name: string) => server.received.filter((command) => command.name === name).length;

describe('receipts', () => {
  it('what has no receipt is sent again in order, unchanged, on the next connection', async () => {
    const sends: number[] = [];
    let connections = 0;
    const { server, client } = await start({
      CONNECT: (_, peer) => {
        connections += 1;
        peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 19 });
      },
      SEND: (send, peer) => {
        sends.push(send.sequenceId);
        if (connections === 1) return send.sequenceId === 2 ? peer.cut() : undefined;
        stored(peer, send);
      },
    });
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    const receipts = await Promise.all([0, 1, 2].map((id) => publisher.publish(hello, id)));

    expect(sends).toEqual([0, 1, 2, 0, 1, 2]);
    expect(receipts.map(({ entryId }) => entryId)).toEqual([0, 1, 2]);
    expect(server.sections.slice(3)).toEqual(server.sections.slice(0, 3));
    const again = await server.command('PRODUCER', 2);
    expect(again).toMatchObject({ producerName: 'scripted-1', userProvidedProducerName: false, epoch: 1 });
  });

  it('a batch is sent again as the batch it was', async () => {
    let connections = 0;
    const { server, client } = await start({
      CONNECT: (_, peer) => {
        connections += 1;
        peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 19 });
      },
      SEND: (send, peer) => (connections === 1 ? peer.cut() : stored(peer, send)),
    });
    const publisher = await client.publisher(TOPIC);

    const receipts = await Promise.all([5, 6, 7].map((id) => publisher.publish(hello, id)));

    expect(server.sections[1]).toEqual(server.sections[0]);
    expect(receipts).toMatchObject([0, 1, 2].map((batchIndex) => ({ entryId: 5, batchIndex, batchSize: 3 })));
  });

  it('a receipt for a message that is not the oldest brings everything again, on the same connection', async () => {
    let first = true;
    const { client, server } = await start({
      SEND: (send, peer) => {
        if (first && send.sequenceId === 0) return;
        first = false;
        stored(peer, send);
      },
    });
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    await Promise.all([publisher.publish(hello, 0), publisher.publish(hello, 1)]);

    expect(count(server, 'CONNECT')).toBe(1);
    expect(count(server, 'PRODUCER')).toBe(2);
  });

  it('a receipt for an old sequence id completes nothing', async () => {
    const { client } = await start({
      SEND: ({ producerId, sequenceId }, peer) => {
        peer.send('SEND_RECEIPT', { producerId, sequenceId: 2, messageId: { ledgerId: 1, entryId: 1 } });
        peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 9, entryId: 9 } });
      },
    });
    const publisher = await client.publisher(TOPIC);

    await expect(publisher.publish(hello, 5)).resolves.toMatchObject({ ledgerId: 9 });
  });

  it('nothing is sent between the close by the broker and the next registration', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC);
    const { producerId } = await server.command('PRODUCER');
    server.peers[0]?.send('CLOSE_PRODUCER', { producerId, requestId: -1 });
    server.peers[0]?.send('PING', {});
    await server.command('PONG');

    await publisher.publish(hello, 0);

    const names = server.received.map(({ name }) => name);
    expect(names.lastIndexOf('PRODUCER')).toBeLessThan(names.indexOf('SEND'));
  });

  it('a message that the broker had before has no place', async () => {
    const { client } = await start({
      SEND: ({ producerId, sequenceId }, peer) =>
        peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: -1, entryId: -1 } }),
    });
    const publisher = await client.publisher(TOPIC);

    await expect(publisher.publish(hello, 0)).resolves.toMatchObject({ ledgerId: -1, entryId: -1 });
  });
});

describe('receipts of what the broker had before', () => {
  it('overtake others and disturb nothing', async () => {
    const { client, server } = await start({
      SEND: (send, peer) => {
        if (send.sequenceId === 5) return;
        peer.send('SEND_RECEIPT', { ...send, messageId: { ledgerId: -1, entryId: -1 } });
        stored(peer, { ...send, sequenceId: 5 });
      },
    });
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    const receipts = await Promise.all([5, 3].map((id) => publisher.publish(hello, id)));

    expect(receipts.map(({ ledgerId }) => ledgerId)).toEqual([7, -1]);
    expect(count(server, 'PRODUCER')).toBe(1);
  });
});

describe('refusals', () => {
  /** Refuses the message with sequence id 1, the first time, and confirms what the other messages of the producer. */
  const refusing = (error: number): Script => {
    let refused = false;
    return {
      SEND: (send, peer) => {
        const { producerId, sequenceId } = send;
        if (sequenceId !== 1 || refused) return stored(peer, send);
        refused = true;
        peer.send('SEND_ERROR', { producerId, sequenceId, error, message: 'scripted' });
      },
    };
  };

  it('what is not allowed fails alone', async () => {
    const { client, server } = await start(refusing(22));
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    const results = await Promise.allSettled([0, 1, 2].map((id) => publisher.publish(hello, id)));

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(count(server, 'PRODUCER')).toBe(1);
  });

  it('what is not allowed fails alone, also while messages before it have no receipt', async () => {
    const { client } = await start({
      SEND: ({ producerId, sequenceId }, peer) => {
        if (sequenceId === 0) return;
        peer.send('SEND_ERROR', { producerId, sequenceId, error: 22, message: 'scripted' });
        stored(peer, { producerId, sequenceId: 0 });
      },
    });
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    const results = await Promise.allSettled([0, 1].map((id) => publisher.publish(hello, id)));

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it.each([
    ['a checksum that the broker computes otherwise', 9],
    ['a failure to store', 2],
    ['an error that is not known', 99],
  ])('%s: everything is sent again, and others on the connection notice nothing', async (_what, error) => {
    const { client, server } = await start(refusing(error));
    const publisher = await client.publisher(TOPIC, UNBATCHED);
    const neighbour = await client.publisher(`${TOPIC}-2`, UNBATCHED);

    await Promise.all([publisher.publish(hello, 0), publisher.publish(hello, 1), publisher.publish(hello, 2)]);
    await neighbour.publish(hello, 0);

    expect(count(server, 'CONNECT')).toBe(1);
    expect(count(server, 'PRODUCER')).toBe(3);
  });

  it('a terminated topic fails what waits and all that is published later', async () => {
    const { client } = await start(refusing(15));
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    const waiting = [1, 2].map((id) => publisher.publish(hello, id));

    for (const one of waiting) await expect(one).rejects.toMatchObject({ code: 'TOPIC_TERMINATED' });
    await expect(publisher.publish(hello, 3)).rejects.toMatchObject({ code: 'TOPIC_TERMINATED', retriable: false });
  });

  it('an exceeded quota fails what waits, and the publisher goes on', async () => {
    const { client } = await start(refusing(8));
    const publisher = await client.publisher(TOPIC, UNBATCHED);

    await expect(publisher.publish(hello, 1)).rejects.toMatchObject({ retriable: true });

    await expect(publisher.publish(hello, 2)).resolves.toMatchObject({ entryId: 2 });
  });
});

describe('sizes', () => {
  it.each([
    ['payload', { payload: Buffer.alloc(100_001), properties: {} }],
    ['properties', { payload: Buffer.alloc(1), properties: { a: 'x'.repeat(100_000) } }],
    ['key', { payload: Buffer.alloc(1), properties: {}, key: 'x'.repeat(100_000) }],
  ])('a message whose %s is above the limit of the broker is refused before it is sent', async (_what, large) => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC);

    await expect(publisher.publish(large, 0)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE', retriable: false });

    await publisher.publish(hello, 1);
    expect(server.sections).toHaveLength(1);
  });

  it('a batch above the limit of the broker becomes several', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, { batching: { maxBytes: 1_000_000 } });
    const message = { payload: Buffer.alloc(30_000), properties: {} };

    await Promise.all([0, 1, 2, 3].map((id) => publisher.publish(message, id)));

    expect(server.sections).toHaveLength(2);
  });
});

describe('time', () => {
  it('without a receipt in time, everything that waits fails in order and the publisher goes on', async () => {
    const clock = new SocketClock();
    let silent = true;
    const { client, server } = await start(
      { SEND: (send, peer) => (silent ? undefined : stored(peer, send)) },
      { clock },
    );
    const publisher = await client.publisher(TOPIC, { ...UNBATCHED, sendTimeoutMs: 1_000 });
    const failed: number[] = [];
    const publish = (id: number) => publisher.publish(hello, id).catch(() => failed.push(id));
    const first = publish(0);
    await clock.advanceBy(999);
    const second = publish(1);
    await server.command('SEND', 2);
    expect(failed).toEqual([]);

    await clock.advanceBy(1);
    await Promise.all([first, second]);

    expect(failed).toEqual([0, 1]);
    silent = false;
    await expect(publisher.publish(hello, 2)).resolves.toMatchObject({ entryId: 2 });
  });

  it('a receipt that comes too late does not disturb what is sent afterwards', async () => {
    const clock = new SocketClock();
    const { client, server } = await start(
      {
        SEND: (send, peer) => {
          if (send.sequenceId === 0) return;
          stored(peer, { ...send, sequenceId: 0 });
          stored(peer, send);
        },
      },
      { clock },
    );
    const publisher = await client.publisher(TOPIC, { ...UNBATCHED, sendTimeoutMs: 1_000 });
    const late = publisher.publish(hello, 0).catch(() => 'timed out');
    await server.command('SEND');
    await clock.advanceBy(1_000);
    await late;

    await publisher.publish(hello, 1);

    expect(count(server, 'PRODUCER')).toBe(1);
  });

  it('a message that waits alone for its batch leaves with the delay', async () => {
    const clock = new SocketClock();
    const { client, server } = await start({}, { clock });
    const publisher = await client.publisher(TOPIC, { batching: { maxDelayMs: 10 } });
    const receipt = publisher.publish(hello, 0);
    await clock.advanceBy(9);
    expect(count(server, 'SEND')).toBe(0);

    await clock.advanceBy(1);

    await expect(receipt).resolves.toMatchObject({ batchIndex: -1, batchSize: 0 });
  });
});

describe('room', () => {
  it('a message beyond the limit waits for a receipt of one before it', async () => {
    const waiting: (() => void)[] = [];
    const { client, server } = await start({ SEND: (send, peer) => void waiting.push(() => stored(peer, send)) });
    const publisher = await client.publisher(TOPIC, { ...UNBATCHED, maxPendingMessages: 2 });
    const receipts = [0, 1, 2].map((id) => publisher.publish(hello, id));
    await server.command('SEND', 2);
    server.peers[0]?.send('PING', {});
    await server.command('PONG');
    expect(count(server, 'SEND')).toBe(2);

    waiting.shift()?.();
    await server.command('SEND', 3);

    for (const answer of waiting) answer();
    await expect(Promise.all(receipts)).resolves.toHaveLength(3);
  });

  it('what waits for room fails when the publisher closes, what was sent is waited for', async () => {
    let answer = (): void => undefined;
    const { client, server } = await start({ SEND: (send, peer) => void (answer = () => stored(peer, send)) });
    const publisher = await client.publisher(TOPIC, { ...UNBATCHED, maxPendingMessages: 1 });
    const results = Promise.allSettled([0, 1].map((id) => publisher.publish(hello, id)));
    await server.command('SEND');

    const closed = publisher.close();
    answer();

    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await closed;
  });
});

describe('registration', () => {
  it('a name of the own is asked for, and told to be so', async () => {
    const { client, server } = await start();

    await client.publisher(TOPIC, { producerName: 'mine' });

    await expect(server.command('PRODUCER')).resolves.toMatchObject({
      producerName: 'mine',
      userProvidedProducerName: true,
    });
  });

  it('sequence ids go on where the broker says that the name ended', async () => {
    const { client } = await start({
      PRODUCER: ({ requestId }, peer) =>
        peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', lastSequenceId: 41 }),
    });

    const publisher = await client.publisher(TOPIC);

    expect(publisher.nextSequenceId()).toBe(42);
  });

  it('options that are wrong are all told at once', async () => {
    const { client } = await start();
    const wrong = { compression: 'rar', maxPendingMessages: 0, batching: { maxDelay: 1 } };

    await expect(client.publisher(TOPIC, wrong as never)).rejects.toMatchObject({
      problems: [
        expect.stringMatching(/"compression" must be one of/),
        expect.stringMatching(/"maxPendingMessages"/),
        expect.stringMatching(/did you mean "maxDelayMs"/),
      ],
    });
  });
});
