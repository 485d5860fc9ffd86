// Numbers above 2^53-1, which cannot be held exactly: a place that others could read is refused by name, and whoever
// else is on the connection goes on.
import { describe, expect, it } from 'vitest';
import { messageFrame } from '../../support/wire-server.js';
import {
  batchSection,
  receiveTexts,
  section,
  startClient,
  startSubscription,
} from '../../support/scripted-consumer.js';

const BEYOND = 2 ** 60;
const OTHER = 'persistent://public/default/other';
const hello = { payload: Buffer.from('hello'), properties: {} };

describe('a message whose id is out of reach', () => {
  it('stays unacknowledged, is told, and its permits come back', async () => {
    const { server, consumerId, deliver, subscription, all, granted, lines, settled } = await startSubscription({
      prefetch: 2,
    });
    const messageId = { ledgerId: BEYOND, entryId: 3 };
    server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId }, batchSection(['a', 'b'])));
    deliver(0, section('next'));

    expect(await receiveTexts(subscription, 1)).toEqual(['next']);
    await settled();
    expect([all('ACK'), all('SUBSCRIBE').length, granted()]).toEqual([[], 1, 5]);
    expect(lines).toMatchObject([
      { level: 'error', text: expect.stringMatching(/cannot be read .* its message id has a number above 2\^53-1/) },
    ]);
  });

  it('costs no other topic of the connection anything', async () => {
    const { server, client, consumerId } = await startSubscription();
    const other = await client.subscribe({ topics: [OTHER], subscription: 's' });
    const second = await server.command('SUBSCRIBE', 2);
    const peer = server.peers.at(-1);
    peer?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId: BEYOND } }, section('refused')));
    const messageId = { ledgerId: 1, entryId: 0 };
    peer?.raw(messageFrame({ consumerId: second.consumerId, messageId }, section('theirs')));

    expect(await receiveTexts(other, 1)).toEqual(['theirs']);
    expect(server.received.filter(({ name }) => name === 'CONNECT')).toHaveLength(1);
  });

  it.each([
    ['corrupt', () => section('xx').subarray(0, -1)],
    ['a marker', () => section('', { markerType: 21 })],
  ])(
    'is neither asked for again nor acknowledged when it is %s: the rounded id is that of another',
    async (_, bytes) => {
      const { server, consumerId, all, settled } = await startSubscription();
      const messageId = { ledgerId: 1, entryId: BEYOND };
      server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId }, bytes()));
      await settled();

      expect([...all('ACK'), ...all('REDELIVER_UNACKNOWLEDGED_MESSAGES')]).toEqual([]);
    },
  );

  it('is refused by name as the last one of a topic', async () => {
    const { subscription } = await startSubscription(
      {},
      {
        GET_LAST_MESSAGE_ID: ({ requestId }, peer) =>
          peer.send('GET_LAST_MESSAGE_ID_RESPONSE', { requestId, lastMessageId: { ledgerId: BEYOND, entryId: 1 } }),
      },
    );

    await expect(subscription.lastMessageIds()).rejects.toMatchObject({
      code: 'MESSAGE_ID_INVALID',
      message: expect.stringMatching(/message id field ledgerId must be a whole number up to 2\^53-1/) as unknown,
    });
  });

  it('is refused by name as the place of a published one, and the publisher goes on', async () => {
    const { client, server } = await startClient({
      SEND: ({ producerId, sequenceId }, peer) =>
        peer.send('SEND_RECEIPT', {
          producerId,
          sequenceId,
          messageId: { ledgerId: 1, entryId: sequenceId === 0 ? BEYOND : sequenceId },
        }),
    });
    const publisher = await client.publisher(OTHER, { batching: false });

    await expect(publisher.publish(hello, 0)).rejects.toMatchObject({
      code: 'MESSAGE_ID_INVALID',
      retriable: false,
      message: expect.stringMatching(/was stored, but its message id has a number above 2\^53-1/) as unknown,
    });
    await expect(publisher.publish(hello, 1)).resolves.toMatchObject({ entryId: 1 });
    expect(server.received.filter(({ name }) => name === 'SEND' || name === 'CONNECT')).toHaveLength(3);
  });
});

it('a producer name whose last sequence id is out of reach is refused by name, and given back', async () => {
  const { client, server } = await startClient({
    PRODUCER: ({ requestId, topic }, peer) =>
      peer.send('PRODUCER_SUCCESS', {
        requestId,
        producerName: 'theirs',
        lastSequenceId: topic === OTHER ? BEYOND : -1,
      }),
  });

  await expect(client.publisher(OTHER, { producerName: 'theirs' })).rejects.toMatchObject({
    code: 'NOT_SUPPORTED',
    retriable: false,
    message: expect.stringMatching(/producer name "theirs" .* was used with a sequence id above 2\^53-1/) as unknown,
  });
  await server.command('CLOSE_PRODUCER');
  await expect(client.publisher('elsewhere')).resolves.toBeDefined();
  expect(server.received.filter(({ name }) => name === 'CONNECT')).toHaveLength(1);
});
