// Faults that a real broker does not produce on demand: every message is counted, and none is lost or confused.
import { expect, it } from 'vitest';
import { TOPIC, receiveTexts, section, startClient } from '../../support/scripted-consumer.js';
import { messageFrame } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const hello = { payload: Buffer.from('hello'), properties: {} };
/** 20 redirects and the first lookup. */
const LOOKUPS_OF_A_LOOP = 21;

it('brokers that send each other the client in a circle lose no message, whenever they end it', async () => {
  let inCircle = false;
  let url = '';
  const stored: number[] = [];
  const script: Script = {
    LOOKUP: ({ requestId }, peer) =>
      peer.send('LOOKUP_RESPONSE', { requestId, response: inCircle ? 0 : 1, brokerServiceUrl: url }),
    SEND: ({ producerId, sequenceId }, peer) => {
      stored.push(sequenceId);
      peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 1, entryId: sequenceId } });
    },
  };
  const { server, client } = await startClient(script);
  url = server.url;
  const publisher = await client.publisher(TOPIC, { batching: false });
  const subscription = await client.subscribe({ topics: [TOPIC], subscription: 's' });
  const publish = (from: number, count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => publisher.publish(hello, from + index)));
  const before = await publish(0, 50);
  const subscribes = server.received.filter(({ name }) => name === 'SUBSCRIBE').length;

  inCircle = true;
  const lookups = server.received.filter(({ name }) => name === 'LOOKUP').length;
  server.peers.at(-1)?.cut();
  const meanwhile = publish(50, 100);
  await server.command('LOOKUP', lookups + 3 * LOOKUPS_OF_A_LOOP);
  inCircle = false;
  const during = await meanwhile;
  const { consumerId } = await server.command('SUBSCRIBE', subscribes + 1);
  await server.command('FLOW', 2);
  for (let entryId = 0; entryId < 150; entryId++)
    server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId } }, section(`m${entryId}`)));

  expect([...before, ...during].map(({ entryId }) => entryId)).toEqual(Array.from({ length: 150 }, (_, id) => id));
  expect([...new Set(stored)]).toEqual(Array.from({ length: 150 }, (_, id) => id));
  expect(await receiveTexts(subscription, 150)).toEqual(Array.from({ length: 150 }, (_, id) => `m${id}`));
});

it('receipts for old and unknown sequence ids complete nothing: each message gets its own', async () => {
  const { server, client } = await startClient({
    SEND: ({ producerId, sequenceId }, peer) => {
      const receipt = (id: number, ledgerId: number): void =>
        peer.send('SEND_RECEIPT', { producerId, sequenceId: id, messageId: { ledgerId, entryId: id } });
      for (const old of [sequenceId - 1, sequenceId - 7, 1_000_000 + sequenceId]) if (old >= 0) receipt(old, 666);
      receipt(sequenceId, 1);
      receipt(sequenceId, 666);
    },
  });
  const publisher = await client.publisher(TOPIC, { batching: false });

  const receipts = await Promise.all(Array.from({ length: 500 }, (_, id) => publisher.publish(hello, id)));

  expect(receipts.map(({ ledgerId, entryId }) => [ledgerId, entryId])).toEqual(
    Array.from({ length: 500 }, (_, id) => [1, id]),
  );
  expect(server.received.filter(({ name }) => name === 'PRODUCER' || name === 'CONNECT')).toHaveLength(2);
});

it('what was changed on its way and comes after later ones fails where the broker drops it as a repetition', async () => {
  let highest = -1;
  let changed = true;
  const { client } = await startClient({
    SEND: ({ producerId, sequenceId }, peer) => {
      if (sequenceId === 1 && changed) {
        changed = false;
        return peer.send('SEND_ERROR', { producerId, sequenceId, error: 9, message: 'checksum' });
      }
      const isRepetition = sequenceId <= highest;
      highest = Math.max(highest, sequenceId);
      const messageId = isRepetition ? { ledgerId: -1, entryId: -1 } : { ledgerId: 7, entryId: sequenceId };
      peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId });
    },
  });
  const publisher = await client.publisher(TOPIC, { batching: false });

  const [before, lost, after] = [0, 1, 2].map((id) => publisher.publish(hello, id));

  await expect(lost).rejects.toMatchObject({
    code: 'BROKER_ERROR',
    retriable: false,
    message: expect.stringMatching(/is not stored/) as unknown,
  });
  await expect(before).resolves.toMatchObject({ ledgerId: 7, entryId: 0 });
  // Its first copy was stored; the receipt of the second says so.
  await expect(after).resolves.toBeDefined();
});
