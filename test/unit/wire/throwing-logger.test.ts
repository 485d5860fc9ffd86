// A logger that fails costs its lines and nothing else: what was lost is attached again, and no rejection is left over.
import { expect, it } from 'vitest';
import { TOPIC, never, section, startClient, textOf } from '../../support/scripted-consumer.js';
import { messageFrame } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const SERVICE_NOT_READY = 6;

function failing(): never {
  throw new Error('the disk of the log is full');
}

/** As a logger in JavaScript may. */
function rejecting(): unknown {
  return Promise.reject(new Error('the disk of the log is full'));
}

it.each([
  ['throws', failing],
  ['rejects', rejecting],
])('a publisher and a consumer whose logger %s are attached again after a loss', async (_, log) => {
  let refusals = 0;
  const refuses = (requestId: number, peer: Parameters<NonNullable<Script['PRODUCER']>>[1]): boolean => {
    if (refusals === 0) return false;
    refusals -= 1;
    peer.send('ERROR', { requestId, error: SERVICE_NOT_READY, message: 'not now' });
    return true;
  };
  const { client, server } = await startClient(
    {
      PRODUCER: ({ requestId }, peer) => {
        if (refuses(requestId, peer)) return;
        peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', lastSequenceId: -1 });
      },
      SUBSCRIBE: ({ requestId }, peer) => {
        if (!refuses(requestId, peer)) peer.send('SUCCESS', { requestId });
      },
      SEND: ({ producerId, sequenceId }, peer) =>
        peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: sequenceId } }),
    },
    { logger: { isEnabled: failing, debug: log, info: log, warn: log, error: log } },
  );
  const publisher = await client.publisher(TOPIC);
  const consumer = await client.subscribe({ topics: [TOPIC], subscription: 's' });

  await server.command('FLOW');
  refusals = 2;
  server.peers.at(-1)?.cut();

  await expect(publisher.publish({ payload: null, properties: {} })).resolves.toMatchObject({ ledgerId: 7 });
  const { consumerId } = await server.command('SUBSCRIBE', 2);
  await server.command('FLOW', 2);
  server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId: 1 } }, section('one')));
  expect(textOf(await consumer.receive(never))).toBe('one');
  expect(refusals).toBe(0);
});
