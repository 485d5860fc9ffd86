// The order of keys on the wire client's own consumers (PIP-493), from their view: what the broker is told, what is
// received and what goes back.
import { describe, expect, it } from 'vitest';
import { exponentialBackoff } from '../../../src/wire.js';
import type { WireConsumerOptions, WireOptions } from '../../../src/wire.js';
import { TOPIC, section, startClient, textOf } from '../../support/scripted-consumer.js';
import type { Script } from '../../support/wire-server.js';
import { cannotKeepOrder, keepsOrder, keyedBatch, start, take, takeAll } from './wire-consumer-order-kit.js';

describe('what the broker is told', () => {
  it('of A1 B1 A2 B2 A3 B3 A1 fails: B goes on, A comes in order, uncounted behind the retry (K-55)', async () => {
    const { arrived, subscription, told, received, after, askedBack, deliverNamed } = await start();
    await arrived(['a1', 'b2', 'a3', 'b4', 'a5', 'b6']);
    subscription.negativeAcknowledge(await take(subscription));
    const toldAtOnce = await told();
    const meanwhile = await received();
    await after(5_000);
    deliverNamed('a1', { redeliveryCount: 1 });
    const retry = await take(subscription);
    await subscription.acknowledge([retry.id]);
    for (const name of ['a3', 'a5', 'a7']) deliverNamed(name);

    expect(toldAtOnce).toEqual([[[1], [3, 5]]]);
    expect(meanwhile).toEqual(['b2', 'b4', 'b6']);
    expect(await askedBack()).toEqual([[1]]);
    expect([textOf(retry), retry.redeliveryCount]).toEqual(['a1', 1]);
    const rest = [await take(subscription), await take(subscription), await take(subscription)];
    expect(rest.map((one) => [textOf(one), one.redeliveryCount])).toEqual([
      ['a3', 0],
      ['a5', 0],
      ['a7', 0],
    ]);
    expect(await told()).toHaveLength(1);
  });

  it('is told at once; the delay and the backoff stay here, and end in the ordinary request (K-41)', async () => {
    const { arrived, subscription, told, askedBack, after } = await start({ negativeAckBackoff: exponentialBackoff() });
    await arrived(['a1'], { redeliveryCount: 2 });
    subscription.negativeAcknowledge(await take(subscription));

    expect(await told()).toEqual([[[1], []]]);
    await after(3_999);
    expect(await askedBack()).toEqual([]);
    await after(1);
    expect(await askedBack()).toEqual([[1]]);
  });

  it('a delay of 0 is asked for behind it (K-41)', async () => {
    const { arrived, subscription, after, server } = await start({ negativeAckRedeliveryDelayMs: 0 });
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    await after(0);

    const names = server.received.map(({ name }) => name);
    expect(names.filter((name) => name === 'NEGATIVE_ACK' || name.startsWith('REDELIVER'))).toEqual([
      'NEGATIVE_ACK',
      'REDELIVER_UNACKNOWLEDGED_MESSAGES',
    ]);
  });

  it('what was acknowledged before goes out before it (K-42)', async () => {
    const { arrived, subscription, told, server } = await start();
    await arrived(['b1', 'a2']);
    const [first, second] = await takeAll(subscription);
    const acknowledged = subscription.acknowledge([first!.id]);
    subscription.negativeAcknowledge(second!);
    await acknowledged;

    expect(await told()).toEqual([[[2], []]]);
    const names = server.received.map(({ name }) => name).filter((name) => name.endsWith('ACK'));
    expect(names).toEqual(['ACK', 'NEGATIVE_ACK']);
  });

  it('a position that the broker skips is no error, and is not told again: the delay brings it (K-49)', async () => {
    const { arrived, subscription, told, askedBack, after, lines } = await start();
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    await after(5_000);

    expect(await told()).toEqual([[[1], []]]);
    expect(await askedBack()).toEqual([[1]]);
    expect(lines.filter(({ level }) => level !== 'debug' && level !== 'info')).toEqual([]);
  });
});

describe('the broker is told nothing, and later messages are received (K-40)', () => {
  it.each<[string, Partial<WireConsumerOptions>, Script, Partial<WireOptions>]>([
    ['where it is disabled', { orderedNegativeAck: 'disabled' }, {}, {}],
    ['on Shared', { type: 'shared' }, {}, {}],
    ['by a broker without it', {}, { CONNECT: cannotKeepOrder }, {}],
    ['by a client without the option', {}, { CONNECT: keepsOrder }, { experimentalOrderedNegativeAck: false }],
  ])('%s', async (_, options, script, client) => {
    const { arrived, subscription, told, received, askedBack, after } = await start(options, script, client);
    await arrived(['a1', 'a2']);
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual(['a2']);
    await after(5_000);
    expect(await told()).toEqual([]);
    expect(await askedBack()).toEqual([[1]]);
  });

  it('of an id alone: its key is not known (K-48)', async () => {
    const { arrived, subscription, told, received, askedBack, after } = await start();
    await arrived(['a1', 'a2']);
    subscription.negativeAcknowledgeId((await take(subscription)).id);

    expect(await received()).toEqual(['a2']);
    await after(5_000);
    expect(await told()).toEqual([]);
    expect(await askedBack()).toEqual([[1]]);
  });

  it('of a message without a key, nor of one that came in chunks (K-43)', async () => {
    const { deliver, subscription, told, settled, received } = await start();
    const chunk = { uuid: 'u', numChunksFromMsg: 2, totalChunkMsgSize: 2, partitionKey: 'a' };
    deliver(1, section('x'));
    deliver(2, section('y', { ...chunk, chunkId: 0 }));
    deliver(3, section('z', { ...chunk, chunkId: 1 }));
    deliver(4, section('later', { partitionKey: 'a' }));
    await settled();
    subscription.negativeAcknowledge(await take(subscription));
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual(['later']);
    expect(await told()).toEqual([]);
  });
});

describe('the key is the ordering key, else the key, whatever its length (K-43)', () => {
  it('the ordering key goes before the key', async () => {
    const { deliver, subscription, told, received, settled } = await start();
    const keyed = (orderingKey: string, partitionKey: string) => ({
      orderingKey: Buffer.from(orderingKey),
      partitionKey,
    });
    deliver(1, section('first', keyed('x', 'same')));
    deliver(2, section('other', keyed('y', 'same')));
    deliver(3, section('behind', keyed('x', 'different')));
    await settled();
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual(['other']);
    expect(await told()).toEqual([[[1], [3]]]);
  });

  it('an empty key is a key, and bytes are their text', async () => {
    const { deliver, subscription, told, received, settled } = await start();
    deliver(1, section('empty', { partitionKey: '' }));
    deliver(2, section('bytes', { partitionKey: Buffer.from('k').toString('base64'), partitionKeyB64Encoded: true }));
    deliver(3, section('empty too', { partitionKey: '' }));
    deliver(4, section('text', { partitionKey: 'k' }));
    await settled();
    subscription.negativeAcknowledge(await take(subscription));
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual([]);
    expect(await told()).toEqual([
      [[1], [3]],
      [[2], [4]],
    ]);
  });
});

describe('just before a message is handed on (K-44)', () => {
  it('a later one of the key goes back that comes after the failure, also to a receive that waits', async () => {
    const { arrived, subscription, told, deliverNamed } = await start();
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    const next = take(subscription);
    for (const name of ['a2', 'a3', 'b4']) deliverNamed(name);

    expect(textOf(await next)).toBe('b4');
    expect(await told()).toEqual([
      [[1], []],
      [[], [2]],
      [[], [3]],
    ]);
  });

  it('an earlier one is handed on, and so is the retry', async () => {
    const { arrived, subscription, received } = await start();
    await arrived(['a5']);
    subscription.negativeAcknowledge(await take(subscription));
    await arrived(['a4', 'a5', 'a6']);

    expect(await received()).toEqual(['a4', 'a5']);
  });

  it('so are the other messages of its batch; a later batch goes back whole', async () => {
    const { deliver, subscription, told, received, settled } = await start();
    deliver(1, keyedBatch('a', ['x', 'y']));
    deliver(2, keyedBatch('a', ['u', 'v']));
    await settled();
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual(['y']);
    expect(await told()).toEqual([[[1], [2]]]);
  });

  it('of two that failed the later one waits for the earlier one, and its entry is in one list alone (K-22)', async () => {
    const { deliver, arrived, subscription, told, received, settled, all } = await start();
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [first, second] = [await take(subscription), await take(subscription)];
    subscription.negativeAcknowledge(second);
    subscription.negativeAcknowledge(first);
    const toldFirst = await told();
    const meanwhile = await received();
    await subscription.acknowledge([first.id]);
    deliver(2, keyedBatch('a', ['x', 'y']));

    expect(toldFirst).toEqual([
      [[2], []],
      [[1], [2]],
    ]);
    expect(all('NEGATIVE_ACK')[0]?.negativeAcked).toMatchObject([{ batchIndex: 0, ackSet: [0b11n] }]);
    expect(meanwhile).toEqual([]);
    expect(await received()).toEqual(['x', 'y']);
  });

  it('what fails is not given back with its entry, also where that waits for an earlier one (K-22)', async () => {
    const { deliver, arrived, subscription, told, settled } = await start();
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [first, x] = await takeAll(subscription);
    subscription.negativeAcknowledge(first!);
    await subscription.redeliver([x!.id]);
    deliver(2, keyedBatch('a', ['x', 'y']), { redeliveryCount: 1 });
    await settled();
    subscription.negativeAcknowledge(x!);

    expect(await told()).toEqual([
      [[1], []],
      [[2], []],
    ]);
  });

  it('each topic for itself, on several and partitioned ones', async () => {
    const topics = [TOPIC, `${TOPIC}2`];
    const script: Script = {
      PARTITIONED_METADATA: ({ requestId, topic }, peer) =>
        peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: topic === TOPIC ? 2 : 0, response: 0 }),
    };
    const { all, deliverNamed, subscription, told, received, settled } = await start({ topics }, script);
    const [one = 0, two = 0, three = 0] = all('SUBSCRIBE').map(({ consumerId }) => consumerId);
    deliverNamed('a1', { consumerId: one });
    deliverNamed('a2', { consumerId: two });
    deliverNamed('a3', { consumerId: three });
    deliverNamed('a4', { consumerId: one });
    await settled();
    subscription.negativeAcknowledge(await take(subscription));

    expect(await received()).toEqual(['a2', 'a3']);
    expect(await told()).toEqual([[[1], [4]]]);
    expect(all('NEGATIVE_ACK')[0]?.consumerId).toBe(one);
  });
});

describe('what goes back (K-45)', () => {
  it('gives its permits back, once, however it went', async () => {
    const { arrived, subscription, granted, received, settled } = await start({ prefetch: 4 });
    await arrived(['a1', 'a2', 'a3', 'b4']);
    subscription.negativeAcknowledge(await take(subscription));
    await arrived(['a5']);
    await received();
    await settled();

    // Five came, and four more may: a grant for each that is not in the client any more.
    expect(granted()).toBe(4 + 5);
  });

  it('is not waited for by the ack timeout, also where a part of its entry was received', async () => {
    const { deliver, arrived, subscription, askedBack, after, settled } = await start({
      ackTimeoutMs: 1_000,
      negativeAckRedeliveryDelayMs: 60_000,
    });
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [first] = [await take(subscription), await take(subscription)];
    subscription.negativeAcknowledge(first);
    await arrived(['a3']);
    await takeAll(subscription);
    await after(10_000);

    expect(await askedBack()).toEqual([]);
  });
});

describe('the mode', () => {
  it('required fails at opening where a broker cannot, by the name of the topic (K-50)', async () => {
    const { client } = await startClient({ CONNECT: cannotKeepOrder }, { experimentalOrderedNegativeAck: true });
    const asked = { topics: [TOPIC], subscription: 's', type: 'key-shared', orderedNegativeAck: 'required' } as const;

    await expect(client.subscribe(asked)).rejects.toMatchObject({
      ...{ code: 'NOT_SUPPORTED', message: expect.stringContaining(TOPIC) as unknown },
    });
    await expect(client.subscribe({ ...asked, type: 'shared' })).rejects.toThrow(/needs the type "key-shared"/);
    await expect(client.subscribe({ ...asked, orderedNegativeAck: 'never' as never })).rejects.toThrow(
      /"orderedNegativeAck" must be one of/,
    );
  });

  it('is best-effort without being asked, where the client speaks it', async () => {
    const { client, subscription } = await start();
    const states: unknown[] = [];
    subscription.onState(({ orderedNegativeAck }) => states.push(orderedNegativeAck));
    expect(client.speaksOrderedNegativeAck).toBe(true);
    expect(states).toEqual([true]);
  });
});
