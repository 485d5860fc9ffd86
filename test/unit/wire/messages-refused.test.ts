// Messages that are no messages: refused before anything is counted or written, so that one of them does not stop the
// publishers of the whole client. That all transports say the same of them is in test/scenario/messages-refused.test.ts.
import { describe, expect, it } from 'vitest';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { WirePublisherOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import { WireServer } from '../../support/wire-server.js';
import { WRONG_MESSAGES } from '../../support/wrong-messages.js';
import { closedAfterTest } from '../../support/closed-after-test.js';

const TOPIC = 'persistent://public/default/t';
const NONE = { payload: null, properties: {} };
async function start() {
  const server = closedAfterTest(
    await WireServer.start({
      SEND: ({ producerId, sequenceId }, peer) =>
        peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: sequenceId } }),
    }),
  );
  const client = closedAfterTest(new WireClient({ serviceUrl: server.url }));
  return { server, client };
}

const KINDS: readonly WirePublisherOptions[] = [{}, { batching: false }, { batching: false, chunking: true }];

describe('a message that is none', () => {
  it.each(KINDS)('is refused by name, and what comes after it is published: %j', async (options) => {
    const { server, client } = await start();
    const publisher = await client.publisher(TOPIC, options);

    for (const [wrong, rule] of WRONG_MESSAGES) {
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

  it('has no part in a transaction that it is published in', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC);

    await expect(publisher.publish(NONE, undefined, { transaction: 5 } as never)).rejects.toMatchObject({
      code: 'CONFIGURATION_INVALID',
    });
    await expect(publisher.publish(NONE)).resolves.toMatchObject({ ledgerId: 7 });
  });
});
