// The consumer against a scripted server: permits, settlement, and what becomes of entries that cannot be handed on.
import { describe, expect, it } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import {
  TOPIC,
  batchSection,
  never,
  receiveMany,
  receiveTexts,
  section,
  startSubscription,
  textOf,
} from '../../support/scripted-consumer.js';
import { SocketClock } from '../../support/wire-server.js';

const corrupt = (text: string): Buffer => {
  const bytes = section(text);
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  return bytes;
};

describe('entries that cannot be handed on', () => {
  it('one with a wrong checksum is asked for again, and its permit comes back', async () => {
    const { deliver, subscription, server, granted, settled } = await startSubscription({ prefetch: 1 });
    deliver(0, corrupt('good'));
    const asked = await server.command('REDELIVER_UNACKNOWLEDGED_MESSAGES');
    await settled();
    const grantedBefore = granted();
    deliver(0, section('good'), { redeliveryCount: 1 });

    expect(await subscription.receive(never)).toMatchObject({ payload: Buffer.from('good'), redeliveryCount: 0 });
    expect(asked.messageIds).toEqual([{ ledgerId: 1, entryId: 0 }]);
    expect(grantedBefore).toBe(2);
  });

  it('one whose checksum is wrong three times is got rid of with the reason, and told', async () => {
    const { deliver, server, lines, all, settled } = await startSubscription();
    for (let arrival = 0; arrival < 3; arrival++) deliver(0, corrupt('lost'));

    await expect(server.command('ACK')).resolves.toMatchObject({
      messageId: [{ ledgerId: 1, entryId: 0 }],
      validationError: 2,
    });
    await settled();
    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toHaveLength(2);
    expect(lines.map(({ text }) => text)[2]).toMatch(
      /entry 1:0 of .* is corrupt and is dropped for good: the checksum/,
    );
  });

  it('on Exclusive a wrong checksum brings everything again, in order', async () => {
    const { deliver, subscription, server } = await startSubscription({ type: 'exclusive' });
    deliver(0, corrupt('a'), { consumerEpoch: 0 });
    deliver(1, section('b'), { consumerEpoch: 0 });
    const asked = await server.command('REDELIVER_UNACKNOWLEDGED_MESSAGES');
    deliver(0, section('a'), { consumerEpoch: 1 });
    deliver(1, section('b'), { consumerEpoch: 1 });

    expect(asked).toEqual({ consumerId: expect.any(Number) as number, consumerEpoch: 1 });
    expect(await receiveTexts(subscription, 2)).toEqual(['a', 'b']);
  });

  it.each([
    ['that is encrypted', { encryptionKeys: [{ key: 'k1', value: Buffer.of(1) }] }, /encrypted with the key "k1"/],
    ['in an unknown codec', { compression: 9 }, /compression 9 is not known/],
    ['that says it inflates beyond the limit', { compression: 2, uncompressedSize: 2 ** 31 }, /2147483648 bytes after/],
    ['in a codec that its bytes are not of', { compression: 2, uncompressedSize: 9 }, /cannot be decompressed/],
    ['that is a chunk', { numChunksFromMsg: 3, chunkId: 1, uuid: 'u' }, /chunk 1 of a message in 3 chunks/],
  ])('one %s stays unacknowledged, is told, and its permits come back', async (_, metadata, reason) => {
    const { deliver, subscription, lines, all, granted, settled } = await startSubscription({ prefetch: 5 });
    deliver(0, batchSection(['a', 'b', 'c', 'd', 'e'], metadata));
    deliver(1, section('next'));

    expect(textOf(await subscription.receive(never))).toBe('next');
    await settled();
    expect(all('ACK')).toEqual([]);
    expect(granted()).toBe(10);
    expect(lines).toMatchObject([{ level: 'error', text: reason }]);
  });

  it('a topic full of unreadable entries does not fill the log', async () => {
    const { deliver, settled, lines } = await startSubscription({ prefetch: 1_000 });
    for (let entry = 0; entry < 150; entry++) deliver(entry, section('x', { numChunksFromMsg: 2 }));
    await settled();

    expect(lines.map(({ text }) => /\((.*) so far\)/.exec(text)?.[1])).toEqual(['1', '10', '100']);
  });

  it('a marker of the broker is acknowledged and not delivered', async () => {
    const { deliver, subscription, server } = await startSubscription();
    deliver(0, section('', { markerType: 21 }));
    deliver(1, section('message'));

    expect(textOf(await subscription.receive(never))).toBe('message');
    await expect(server.command('ACK')).resolves.toMatchObject({ messageId: [{ ledgerId: 1, entryId: 0 }] });
  });

  it('properties named __proto__ and length are properties like others', async () => {
    const { deliver, subscription } = await startSubscription();
    const properties = ['__proto__', 'length', 'constructor'].map((key) => ({ key, value: `of ${key}` }));
    deliver(0, section('x', { properties }));

    const message = await subscription.receive(never);

    expect(Object.entries(message?.properties ?? {})).toEqual(properties.map(({ key, value }) => [key, value]));
    expect(({} as { of?: unknown }).of).toBeUndefined();
  });
});

describe('permits', () => {
  it('of a partly acknowledged batch only the messages left are counted', async () => {
    const { deliver, subscription, granted, settled } = await startSubscription({ prefetch: 4 });
    deliver(0, batchSection(['a', 'b', 'c', 'd']), { ackSet: [0b1010n] });

    expect(await receiveTexts(subscription, 2)).toEqual(['b', 'd']);
    await settled();
    expect(granted()).toBe(4 + 2);
  });

  it('of messages that compaction removed come back, and an entry without any is acknowledged', async () => {
    const { deliver, server, granted, settled } = await startSubscription({ prefetch: 3 });
    deliver(0, batchSection(['c'], { numMessagesInBatch: 3, compactedBatchIndexes: [2] }), { ackSet: [0b011n] });

    await expect(server.command('ACK')).resolves.toMatchObject({ messageId: [{ ledgerId: 1, entryId: 0 }] });
    await settled();
    expect(granted()).toBe(3 + 2);
  });

  it('are not granted while paused, and what was granted still arrives', async () => {
    const { deliver, subscription, granted, settled } = await startSubscription({ prefetch: 2 });
    await settled();
    subscription.pause();
    deliver(0, section('a'));
    deliver(1, section('b'));
    const texts = await receiveTexts(subscription, 2);
    await settled();
    const whilePaused = granted();
    subscription.resume();
    await settled();

    expect([texts, whilePaused, granted()]).toEqual([['a', 'b'], 2, 4]);
  });

  it('a standby that is told so gives up what lies here', async () => {
    const { deliver, say, consumerId, subscription, settled, granted } = await startSubscription({
      type: 'failover',
      prefetch: 2,
    });
    const states: string[] = [];
    subscription.onState(({ state }) => states.push(state));
    say('ACTIVE_CONSUMER_CHANGE', { consumerId, isActive: true });
    deliver(0, section('a'));
    say('ACTIVE_CONSUMER_CHANGE', { consumerId, isActive: false });
    deliver(1, section('b'));
    await settled();
    const empty = subscription.receive(AbortSignal.abort());

    expect(await empty).toBeUndefined();
    expect(states).toEqual(['connected', 'active', 'standby']);
    expect(granted()).toBe(4);
  });
});

describe('acknowledgements of a batch', () => {
  it('all messages of it in one turn go out as one whole entry', async () => {
    const { deliver, subscription, all } = await startSubscription();
    deliver(0, batchSection(['a', 'b', 'c']));
    const messages = await receiveMany(subscription, 3);

    await Promise.all(messages.map(({ id }) => subscription.acknowledge([id])));

    expect(all('ACK').map(({ messageId }) => messageId)).toEqual([[{ ledgerId: 1, entryId: 0 }]]);
  });

  it('the last one, lost and repeated, still names the whole entry', async () => {
    const clock = new SocketClock();
    let answers = true;
    const { deliver, subscription, all, server } = await startSubscription(
      {},
      {
        ACK: ({ consumerId, requestId }, peer) => {
          if (answers) peer.send('ACK_RESPONSE', { consumerId, requestId });
        },
      },
      { clock, requestTimeoutMs: 500 },
    );
    deliver(0, batchSection(['a', 'b']));
    const [first, last] = await receiveMany(subscription, 2);
    await subscription.acknowledge([first!.id]);
    answers = false;
    const lost = subscription.acknowledge([last!.id]).catch((error: unknown) => error);
    await server.command('ACK', 2);
    await clock.advanceBy(500);
    await expect(lost).resolves.toMatchObject({ code: 'CALL_TIMED_OUT' });
    answers = true;

    await subscription.acknowledge([last!.id]);

    expect(all('ACK').at(-1)?.messageId).toEqual([{ ledgerId: 1, entryId: 0 }]);
  });

  it('what was acknowledged here is not handed on when the whole batch comes again', async () => {
    const { deliver, subscription } = await startSubscription();
    deliver(0, batchSection(['a', 'b', 'c']));
    const [a, b] = await receiveMany(subscription, 3);
    await subscription.acknowledge([a!.id]);
    await subscription.redeliver([b!.id]);
    deliver(0, batchSection(['a', 'b', 'c']), { redeliveryCount: 1 });

    expect(await receiveTexts(subscription, 2)).toEqual(['b', 'c']);
  });

  it('of another consumer end with the whole entry too', async () => {
    const { subscription, all } = await startSubscription();
    const id = { ledgerId: 9, entryId: 9, partition: -1, batchSize: 2, topic: TOPIC };

    await subscription.acknowledge([{ ...id, batchIndex: 0 }]);
    await subscription.acknowledge([{ ...id, batchIndex: 1 }]);

    expect(all('ACK').map(({ messageId }) => messageId)).toEqual([
      [{ ledgerId: 9, entryId: 9, ackSet: [0b10n], batchSize: 2 }],
      [{ ledgerId: 9, entryId: 9 }],
    ]);
  });

  it('an id that names a message of a batch of unknown size is refused: it would acknowledge its neighbours', async () => {
    const { subscription, all } = await startSubscription();
    const id = { ledgerId: 9, entryId: 9, partition: -1, batchIndex: 1, batchSize: 0, topic: TOPIC };
    const whole = { ...id, batchIndex: -1 };

    await expect(subscription.acknowledge([whole, id])).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
    expect(all('ACK')).toEqual([]);
  });

  it('cumulative in the middle of one names the entry before it first', async () => {
    const { deliver, subscription, all } = await startSubscription({ type: 'exclusive' });
    deliver(4, batchSection(['a', 'b', 'c']));
    const [, b] = await receiveMany(subscription, 3);

    await subscription.acknowledgeCumulative(b!.id);

    expect(all('ACK')).toMatchObject([
      { ackType: 1, messageId: [{ ledgerId: 1, entryId: 3 }] },
      { ackType: 1, messageId: [{ ledgerId: 1, entryId: 4, ackSet: [0b100n], batchSize: 3 }] },
    ]);
  });

  it('a cumulative one under way fails when the broker closes the consumer', async () => {
    const { deliver, subscription, server, say, consumerId } = await startSubscription(
      { type: 'exclusive' },
      { ACK: () => undefined },
    );
    deliver(4, section('a'));
    const [a] = await receiveMany(subscription, 1);
    const failure = subscription.acknowledgeCumulative(a!.id).catch((error: unknown) => error);
    await server.command('ACK');
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });

    await expect(failure).resolves.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
  });
});

describe('registration', () => {
  it('goes to the broker that the closing one names, without a lookup', async () => {
    const other = await startSubscription({ subscription: 'elsewhere' });
    const { say, consumerId, all, subscription } = await startSubscription();
    const connected = connectedAgain(subscription);
    say('CLOSE_CONSUMER', { consumerId, requestId: -1, assignedBrokerServiceUrl: other.server.url });

    await other.server.command('SUBSCRIBE', 2);
    await connected;

    expect(all('LOOKUP')).toHaveLength(1);
  });

  it('ten times lost twice in a row, the broker holds one full set of permits each time', async () => {
    const { server, subscription, settled } = await startSubscription({ prefetch: 7 });
    await settled();
    for (let round = 0; round < 10; round++) {
      const connected = connectedAgain(subscription);
      for (const peer of server.peers) peer.cut();
      await connected;
      await settled();
    }

    const flows = new Map<number, number[]>();
    let registration = 0;
    for (const { name, body } of server.received) {
      if (name === 'SUBSCRIBE') registration += 1;
      if (name === 'FLOW') flows.set(registration, [...(flows.get(registration) ?? []), body.messagePermits]);
    }
    // A registration that was cut before it was answered has none.
    expect(flows.size).toBeGreaterThan(10);
    expect(new Set([...flows.values()].map((granted) => granted.join()))).toEqual(new Set(['7']));
  });

  it('a place taken by others is asked for again and again once it was had', async () => {
    let refuse = 0;
    const { server, say, consumerId, subscription } = await startSubscription(
      { type: 'exclusive' },
      {
        SUBSCRIBE: ({ requestId }, peer) =>
          refuse-- > 0
            ? peer.send('ERROR', { requestId, error: 5, message: 'busy' })
            : peer.send('SUCCESS', { requestId }),
      },
    );
    refuse = 3;
    const connected = connectedAgain(subscription);
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    await connected;

    expect(server.received.filter(({ name }) => name === 'SUBSCRIBE')).toHaveLength(5);
  });
});

/** Resolves when the subscription is attached after the next loss. */
function connectedAgain(subscription: { onState(report: (state: SubscriptionState) => void): void }): Promise<void> {
  return new Promise((resolve) => {
    let lost = false;
    subscription.onState(({ state }) => {
      if (state === 'lost') lost = true;
      if (state === 'connected' && lost) resolve();
    });
  });
}
