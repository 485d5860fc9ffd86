// The receipts of messages that share an entry, and the memory of its frame, which is used again once it has its receipt.
import { beforeEach, describe, expect, it } from 'vitest';
import { TransportError } from '../../../src/core/errors.js';
import { PendingReceipts } from '../../../src/transports/wire/pending-receipts.js';
import { frameMemory, freeFrameMemory } from '../../../src/transports/wire/protocol/frame-memory.js';
import { SERVER_ERROR } from '../../../src/transports/wire/server-errors.js';
import type { WirePublisherOptions } from '../../../src/wire.js';
import { WireClient } from '../../../src/wire.js';
import { WireServer } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';
import { closedAfterTest } from '../../support/closed-after-test.js';

const place = { ledgerId: 7, entryId: 3, partition: 2, topic: 't' };
const LARGE = 100_000;
/** More than are ever kept. */
const MANY = 100;
async function publisherOf(script: Script, options: WirePublisherOptions = {}) {
  const connected: Script = {
    CONNECT: (_, peer) =>
      peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 19, maxMessageSize: LARGE + 1_000 }),
  };
  const server = closedAfterTest(await WireServer.start({ ...connected, ...script }));
  const client = closedAfterTest(new WireClient({ serviceUrl: server.url, random: () => 0.5, reconnectMinMs: 1 }));
  return client.publisher('persistent://public/default/t', options);
}

describe('the receipts of one entry', () => {
  it('name the place of each message in the order of publishing', async () => {
    const receipts = new PendingReceipts(0);
    const promises = [0, 1, 2].map(() => receipts.add(10, undefined));

    receipts.stored(place);

    const ids = await Promise.all(promises);
    expect(ids).toEqual([0, 1, 2].map((batchIndex) => ({ ...place, batchIndex, batchSize: 3 })));
    expect(receipts).toMatchObject({ count: 3, bytes: 30 });
  });

  it('name no batch where the entry has one message', async () => {
    const receipts = new PendingReceipts(0);
    const promise = receipts.add(10, undefined);

    receipts.stored(place);

    await expect(promise).resolves.toEqual({ ...place, batchIndex: -1, batchSize: 0 });
  });

  it('fail with one error', async () => {
    const receipts = new PendingReceipts(0);
    const promises = [0, 1].map(() => receipts.add(10, undefined));
    const error = new TransportError('CALL_TIMED_OUT', 'too late', { retriable: true });

    receipts.failed(error);

    const settled = await Promise.allSettled(promises);
    expect(settled).toEqual([0, 1].map(() => ({ status: 'rejected', reason: error })));
  });

  it('of a batch that had to be cut in two are those of the halves, whatever becomes of the other half', async () => {
    const publisher = await publisherOf(
      {
        SEND: ({ producerId, sequenceId }, peer) => {
          const error = { error: SERVER_ERROR.notAllowed, message: 'not this one' };
          if (sequenceId === 0) peer.send('SEND_ERROR', { producerId, sequenceId, ...error });
          else peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 7, entryId: 1 } });
        },
      },
      { batching: { maxBytes: 1_000_000 } },
    );
    const message = { payload: Buffer.alloc(LARGE / 3), properties: {} };

    const settled = await Promise.allSettled([0, 1, 2, 3].map((id) => publisher.publish(message, id)));

    expect(settled).toMatchObject([
      { status: 'rejected', reason: { code: 'NOT_ALLOWED' } },
      { status: 'rejected', reason: { code: 'NOT_ALLOWED' } },
      { status: 'fulfilled', value: { entryId: 1, batchIndex: 0, batchSize: 2 } },
      { status: 'fulfilled', value: { entryId: 1, batchIndex: 1, batchSize: 2 } },
    ]);
  });
});

describe('the memory of a frame', () => {
  beforeEach(() => {
    for (let i = 0; i < MANY; i++) frameMemory(LARGE);
  });

  it('is used again once it is free, and not before', () => {
    const first = frameMemory(LARGE);
    const second = frameMemory(LARGE);
    expect(second.buffer).not.toBe(first.buffer);

    freeFrameMemory(first);

    expect(frameMemory(LARGE + 1).buffer).toBe(first.buffer);
    expect(frameMemory(LARGE).buffer).not.toBe(first.buffer);
  });

  it('is as long as was asked for, also where it is too small or too large to be kept', () => {
    for (const bytes of [10, LARGE, 10 * LARGE]) {
      const memory = frameMemory(bytes);
      freeFrameMemory(memory);
      expect(memory).toHaveLength(bytes);
    }
    expect(frameMemory(10 * LARGE)).toHaveLength(10 * LARGE);
  });

  it('is kept for some frames, not for any number', () => {
    const frames = Array.from({ length: MANY }, () => frameMemory(LARGE));
    for (const frame of frames) freeFrameMemory(frame);
    const buffers = new Set(frames.map(({ buffer }) => buffer));

    const again = Array.from({ length: MANY }, () => frameMemory(LARGE)).filter(({ buffer }) => buffers.has(buffer));

    expect(again.length).toBeGreaterThan(0);
    expect(again.length).toBeLessThan(MANY);
  });

  /** Memory that was never used here may hold what another test left in it: each message has a mark of its own. */
  let marks = 0;
  function marked() {
    const mark = Buffer.from(`the payload of frame ${++marks}, which was sent`);
    const payload = Buffer.alloc(LARGE);
    mark.copy(payload, LARGE / 2);
    return { mark, message: { payload, properties: {} } };
  }

  it('is free with the receipt of its entry', async () => {
    const publisher = await publisherOf({}, { batching: false });
    const { mark, message } = marked();

    await publisher.publish(message, 0);

    expect(frameMemory(LARGE).includes(mark)).toBe(true);
  });

  it('is not free where it was sent twice: the socket that was given up may still read it', async () => {
    let sends = 0;
    const publisher = await publisherOf(
      {
        SEND: ({ producerId, sequenceId }, peer) => {
          sends += 1;
          if (sends === 1) peer.cut();
          else peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 1, entryId: 1 } });
        },
      },
      { batching: false },
    );
    const { mark, message } = marked();

    await publisher.publish(message, 0);

    expect(sends).toBe(2);
    expect(frameMemory(LARGE).includes(mark)).toBe(false);
  });

  it('is not free where its sequence id was given up and published again: the receipt may be for the frame before', async () => {
    let sends = 0;
    const publisher = await publisherOf(
      {
        SEND: ({ producerId, sequenceId }, peer) => {
          sends += 1;
          if (sends === 1)
            peer.send('SEND_ERROR', { producerId, sequenceId, error: SERVER_ERROR.notAllowed, message: '' });
          else peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 1, entryId: sequenceId } });
        },
      },
      { batching: false },
    );
    await publisher.publish(marked().message, 0).catch(() => undefined);

    const again = marked();
    await publisher.publish(again.message, 0);
    expect(frameMemory(LARGE).includes(again.mark)).toBe(false);

    const next = marked();
    await publisher.publish(next.message, 1);
    expect(frameMemory(LARGE).includes(next.mark)).toBe(true);
  });
});
