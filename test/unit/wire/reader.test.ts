// A reader against a scripted server: where each registration begins and what is not given out twice.
import { describe, expect, it, vi } from 'vitest';
import type { MessageId } from '../../../src/core/message-id.js';
import { batchSection, never, section, startClient, textOf } from '../../support/scripted-consumer.js';
import { messageFrame } from '../../support/wire-server.js';
import type { Peer, Script, WireServer } from '../../support/wire-server.js';
import type { WireReaderOptions } from '../../../src/wire.js';

const TOPIC = 'persistent://public/default/t';
const PLACE: MessageId = { ledgerId: 1, entryId: 3, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC };

/** A topic whose entries 1:0 to 1:`last` are single messages; it sends from where it is asked to, that entry included. */
function topicWith(last: number, more: Script = {}): Script {
  const starts = new Map<number, number>();
  return {
    SUBSCRIBE: ({ requestId, consumerId, startMessageId }, peer) => {
      const { ledgerId, entryId } = startMessageId ?? { ledgerId: -1, entryId: -1 };
      starts.set(consumerId, ledgerId === -1 ? 0 : ledgerId === 1 ? entryId : last + 1);
      peer.send('SUCCESS', { requestId });
    },
    FLOW: ({ consumerId }, peer) => {
      for (let entryId = starts.get(consumerId) ?? 0; entryId <= last; entryId++) deliver(peer, consumerId, entryId);
      starts.set(consumerId, last + 1);
    },
    GET_LAST_MESSAGE_ID: ({ requestId }, peer) => {
      const lastMessageId = last < 0 ? { ledgerId: -1, entryId: -1 } : { ledgerId: 1, entryId: last };
      peer.send('GET_LAST_MESSAGE_ID_RESPONSE', { requestId, lastMessageId });
    },
    ...more,
  };
}

function deliver(peer: Peer | undefined, consumerId: number, entryId: number): void {
  const text = section(`${entryId}`, { publishTime: 1_000 + entryId });
  peer?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId } }, text));
}

async function open(script: Script, options: Partial<WireReaderOptions> = {}) {
  const started = await startClient(script);
  const reader = await started.client.reader({ topic: TOPIC, start: 'earliest', ...options });
  return {
    ...started,
    reader,
    read: async (count: number): Promise<readonly string[]> => {
      const texts: string[] = [];
      while (texts.length < count) texts.push(textOf(await reader.read(never)));
      return texts;
    },
  };
}

const starts = (server: WireServer) =>
  server.received.flatMap(({ name, body }) => (name === 'SUBSCRIBE' ? [body.startMessageId] : []));

describe('a reader', () => {
  it('has a subscription of its own that the broker does not keep', async () => {
    const { server } = await open(topicWith(0));

    await expect(server.command('SUBSCRIBE')).resolves.toMatchObject({
      durable: false,
      subType: 0,
      subscription: expect.stringMatching(/^pulsework-reader-/) as string,
      startMessageId: { ledgerId: -1, entryId: -1 },
    });
  });

  it('leaves out the message it starts behind, which the broker sends', async () => {
    const { read } = await open(topicWith(5), { start: PLACE });
    expect(await read(2)).toEqual(['4', '5']);
  });

  it('reads it when it is told to', async () => {
    const { read } = await open(topicWith(5), { start: PLACE, startInclusive: true });
    expect(await read(3)).toEqual(['3', '4', '5']);
  });

  it('leaves out the lower messages of the batch it starts in', async () => {
    const batch: Script = {
      FLOW: ({ consumerId }, peer) => {
        const messageId = { ledgerId: 1, entryId: 3 };
        peer.raw(messageFrame({ consumerId, messageId }, batchSection(['a', 'b', 'c', 'd'])));
      },
    };
    const { read } = await open(topicWith(3, batch), { start: { ...PLACE, batchIndex: 1, batchSize: 4 } });

    expect(await read(2)).toEqual(['c', 'd']);
  });

  it('goes on behind what it gave out last, not behind what lay in the client', async () => {
    const { read, server } = await open(topicWith(5));
    expect(await read(2)).toEqual(['0', '1']);

    server.peers.at(-1)?.cut();
    await server.command('SUBSCRIBE', 2);

    expect(await read(4)).toEqual(['2', '3', '4', '5']);
    expect(starts(server)).toMatchObject([{ entryId: -1 }, { ledgerId: 1, entryId: 1 }]);
  });

  it('that starts at the end misses nothing published while it has no connection', async () => {
    const script = topicWith(5);
    const { read, server } = await open(script, { start: 'latest' });
    Object.assign(script, topicWith(7));

    server.peers.at(-1)?.cut();

    expect(await read(2)).toEqual(['6', '7']);
    expect(starts(server).at(-1)).toMatchObject({ ledgerId: 1, entryId: 5 });
  });

  it('that starts at a time leaves out what was published before, also after a lost connection', async () => {
    const { read, server } = await open(topicWith(5), { start: new Date(1_003) });

    await expect(server.command('SEEK')).resolves.toMatchObject({ messagePublishTime: 1_003 });
    expect(await read(3)).toEqual(['3', '4', '5']);
  });

  it('that is moved gives out nothing from before', async () => {
    const { reader, read } = await open(topicWith(5));
    expect(await read(1)).toEqual(['0']);

    await reader.seek({ ...PLACE, entryId: 4 });

    expect(await read(2)).toEqual(['4', '5']);
  });

  it('that is being moved back gives out nothing that lay in the client', async () => {
    let move = (): void => undefined;
    const hold: Script = { SEEK: ({ requestId }, peer) => (move = () => peer.send('SUCCESS', { requestId })) };
    const { reader, read, server } = await open(topicWith(5, hold));
    expect(await read(3)).toEqual(['0', '1', '2']);

    const moved = reader.seek({ ...PLACE, entryId: 1 });
    await server.command('SEEK');
    const next = reader.read(never);
    move();

    await moved;
    expect(textOf(await next)).toBe('1');
  });

  it('stays where it is when the broker refuses to move it', async () => {
    const refuse: Script = {
      SEEK: ({ requestId }, peer) => peer.send('ERROR', { requestId, error: 22, message: 'no' }),
    };
    const { reader, read } = await open(topicWith(5, refuse));
    expect(await read(1)).toEqual(['0']);

    await expect(reader.seek('latest')).rejects.toMatchObject({ code: 'NOT_ALLOWED' });

    expect(await read(2)).toEqual(['1', '2']);
  });

  it('tells whether there is more', async () => {
    const { reader, read } = await open(topicWith(1));
    expect(await reader.hasMessageAvailable()).toBe(true);
    await read(2);
    expect(await reader.hasMessageAvailable()).toBe(false);

    const empty = await open(topicWith(-1));
    expect(await empty.reader.hasMessageAvailable()).toBe(false);
    const last = await open(topicWith(1), { start: 'latest', startInclusive: true });
    expect(await last.reader.hasMessageAvailable()).toBe(true);
  });

  it('at a time that nothing was published at or after has no more', async () => {
    let behind = 5;
    const { reader } = await open(
      topicWith(5, {
        GET_LAST_MESSAGE_ID: ({ requestId }, peer) => {
          const lastMessageId = { ledgerId: 1, entryId: 5 };
          const consumerMarkDeletePosition = { ledgerId: 1, entryId: behind };
          peer.send('GET_LAST_MESSAGE_ID_RESPONSE', { requestId, lastMessageId, consumerMarkDeletePosition });
        },
      }),
      { start: new Date(1_006) },
    );

    expect(await reader.hasMessageAvailable()).toBe(false);
    behind = 4;
    expect(await reader.hasMessageAvailable()).toBe(true);
  });

  it('at a time has no more once all that the broker sent was too early', async () => {
    const { reader } = await open(topicWith(5), { start: new Date(1_006) });
    // A broker that does not say where it begins.
    expect(await reader.hasMessageAvailable()).toBe(true);

    await expect(reader.read(AbortSignal.timeout(50))).resolves.toBeUndefined();

    expect(await reader.hasMessageAvailable()).toBe(false);
  });

  it('ends a waiting read when it is closed', async () => {
    const { reader, server } = await open(topicWith(-1));
    const waiting = reader.read(never);

    await reader.close();

    await expect(waiting).resolves.toBeUndefined();
    expect(server.received.at(-1)?.name).toBe('CLOSE_CONSUMER');
  });
});

describe('a reader is refused', () => {
  it('with all that is wrong at once', async () => {
    const { client } = await startClient();

    await expect(
      client.reader({ topic: '', start: 'middle' as never, prefetch: 0, startInclusive: 1 as never }),
    ).rejects.toMatchObject({ problems: { length: 4 } });
  });

  it('when its start is a message of another topic or partition', async () => {
    const { client } = await startClient();

    await expect(client.reader({ topic: 'other', start: PLACE })).rejects.toThrow('is a message of persistent://');
    const start = { ...PLACE, topic: '', partition: 2 };
    await expect(client.reader({ topic: TOPIC, start })).rejects.toThrow('partition 2');
  });

  it('when its start is a message and its topic has partitions', async () => {
    const { client, server } = await startClient({
      PARTITIONED_METADATA: ({ requestId }, peer) =>
        peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: 2, response: 0 }),
    });

    await expect(client.reader({ topic: TOPIC, start: PLACE })).rejects.toThrow('name the one');
    await vi.waitFor(() => expect(server.received.filter(({ name }) => name === 'CLOSE_CONSUMER')).toHaveLength(2));
  });
});
