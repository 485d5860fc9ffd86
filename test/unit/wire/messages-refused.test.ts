// Messages that are no messages, as JavaScript or `any` let through: refused by name before anything is counted or
// written, so that one of them does not stop the publishers of the whole client.
import { afterEach, describe, expect, it } from 'vitest';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { WirePublisherOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import { WireServer } from '../../support/wire-server.js';

const TOPIC = 'persistent://public/default/t';
const NONE = { payload: null, properties: {} };
const opened: { close(): Promise<void> }[] = [];

async function start() {
  const server = await WireServer.start({
    SEND: ({ producerId, sequenceId }, peer) =>
      peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: sequenceId } }),
  });
  const client = new WireClient({ serviceUrl: server.url });
  opened.push(server, client);
  return { server, client };
}

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

const WRONG: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /a message must be an object/],
  [null, /a message must be an object/],
  ['text', /a message must be an object/],
  [{ properties: {} }, /"payload" must be bytes \(Uint8Array\) or null, got undefined/],
  [{ payload: 'secret', properties: {} }, /"payload" must be bytes \(Uint8Array\) or null, got a text/],
  [{ payload: [1, 2], properties: {} }, /"payload" must be bytes/],
  [{ payload: new Uint16Array(2), properties: {} }, /"payload" must be bytes/],
  [{ payload: null }, /"properties" must be an object of texts, got undefined/],
  [{ payload: null, properties: null }, /"properties" must be an object of texts/],
  [{ payload: null, properties: ['a'] }, /"properties" must be an object of texts/],
  [{ payload: null, properties: { a: 1 } }, /property "a" must be a text, got 1/],
  [{ payload: null, properties: { a: undefined } }, /property "a" must be a text, got undefined/],
  [{ ...NONE, key: 5 }, /"key" must be a text or bytes \(Uint8Array\), got 5/],
  [{ ...NONE, key: null }, /"key" must be a text or bytes/],
  [{ ...NONE, orderingKey: 'x' }, /"orderingKey" must be bytes \(Uint8Array\), got a text/],
  [{ ...NONE, eventTimeMs: new Date(0) }, /"eventTimeMs" must be a number of milliseconds/],
  [{ ...NONE, eventTimeMs: Number.NaN }, /"eventTimeMs" must be a number of milliseconds, got NaN/],
  [{ ...NONE, deliverAtMs: 'soon' }, /"deliverAtMs" must be a number of milliseconds/],
];

const KINDS: readonly WirePublisherOptions[] = [{}, { batching: false }, { batching: false, chunking: true }];

describe('a message that is none', () => {
  it.each(KINDS)('is refused by name, and what comes after it is published: %j', async (options) => {
    const { server, client } = await start();
    const publisher = await client.publisher(TOPIC, options);

    for (const [wrong, rule] of WRONG) {
      const refused = publisher.publish(wrong as EncodedMessage, 1);
      await expect(refused).rejects.toMatchObject({
        code: 'CONFIGURATION_INVALID',
        message: expect.stringMatching(rule) as string,
      });
    }
    const another = await client.publisher(TOPIC, options);
    await expect(publisher.publish(NONE)).resolves.toMatchObject({ ledgerId: 7 });
    await expect(another.publish({ payload: Buffer.from('x'), properties: {} })).resolves.toMatchObject({
      ledgerId: 7,
    });
    expect(server.received.filter(({ name }) => name === 'SEND')).toHaveLength(2);
  });

  it('is told all that is wrong with it at once, the sequence id too', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC);

    const refused = publisher.publish({ payload: 'a', key: 1, properties: { b: 2 } } as never, -1);

    await expect(refused).rejects.toMatchObject({
      problems: [
        expect.stringMatching(/"payload"/),
        expect.stringMatching(/"key"/),
        expect.stringMatching(/property "b"/),
        expect.stringMatching(/sequence id must be a whole number/),
      ],
    });
  });

  it('keeps what it carries out of the error', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC);

    const refused = publisher.publish({ ...NONE, payload: 'the secret' } as never);

    await expect(refused).rejects.not.toThrow(/the secret/);
  });

  it('has no part in a transaction that it is published in', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC);

    await expect(publisher.publish(NONE, undefined, { transaction: 5 } as never)).rejects.toMatchObject({
      code: 'CONFIGURATION_INVALID',
    });
    await expect(publisher.publish(NONE)).resolves.toMatchObject({ ledgerId: 7 });
  });
});
