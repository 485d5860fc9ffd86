// Messages that are no messages: each transport refuses them with the same code in the same words, all that is wrong with one
// at once, and publishes what comes after them.
import type { EncodedMessage, Publisher } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { pulsar } from 'pulsework/pulsar';
import { wire } from 'pulsework/wire';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ScriptedClient, moduleMaking } from '../support/pulsar-client-stand-in/scripted-client.js';
import { WireServer } from '../support/wire-server.js';
import { GOOD, WRONG_MESSAGES } from '../support/wrong-messages.js';

const TOPIC = 'persistent://public/default/t';

async function overEmbedded(): Promise<Publisher> {
  return embedded().publisher(TOPIC);
}

async function overEmbeddedPartitions(): Promise<Publisher> {
  const transport = embedded();
  transport.broker.createPartitionedTopic(TOPIC, 3);
  return transport.publisher(TOPIC);
}

async function overWire(): Promise<Publisher> {
  const server = await WireServer.start({
    SEND: ({ producerId, sequenceId }, peer) =>
      peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: sequenceId } }),
  });
  const transport = wire({ serviceUrl: server.url });
  onTestFinished(async () => {
    await transport.close();
    await server.close();
  });
  return transport.publisher(TOPIC);
}

async function overPulsar(): Promise<Publisher> {
  const client = new ScriptedClient();
  const transport = pulsar({ serviceUrl: 'pulsar://localhost:6650', module: moduleMaking(client) });
  onTestFinished(async () => {
    client.letGo();
    await transport.close();
  });
  return transport.publisher(TOPIC);
}

describe.each([
  ['embedded', overEmbedded],
  ['embedded, with partitions', overEmbeddedPartitions],
  ['wire', overWire],
  ['pulsar', overPulsar],
])('a message that is none, over %s', (name, open) => {
  it('is refused by name, and what comes after it is published', async () => {
    const publisher = await open();
    for (const [wrong, rule] of WRONG_MESSAGES) {
      await expect(publisher.publish(wrong as EncodedMessage, 1)).rejects.toMatchObject({
        name: 'ConfigurationError',
        code: 'CONFIGURATION_INVALID',
        message: expect.stringMatching(rule) as string,
      });
    }
    // The scripted client gives no receipts.
    if (name !== 'pulsar') await publisher.publish(GOOD, publisher.nextSequenceId());
  });

  it('is told all that is wrong with it at once, the sequence id too', async () => {
    const publisher = await open();
    const refused = publisher.publish({ payload: 'a', key: 1, properties: { b: 2 } } as never, -1);
    await expect(refused).rejects.toMatchObject({
      problems: [
        '"payload" must be bytes (Uint8Array) or null, got a text',
        '"key" must be a text or bytes (Uint8Array), got 1',
        'property "b" must be a text, got 2',
        'sequence id must be a whole number of 0 or more, got -1',
      ],
    });
  });

  it('keeps what it carries out of the error', async () => {
    const publisher = await open();
    const refused = publisher.publish({ ...GOOD, payload: 'the secret' } as never, 0);
    await expect(refused).rejects.not.toThrow(/the secret/);
  });
});
