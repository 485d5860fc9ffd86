// What becomes of redelivery delays when connections go, and on several topics.
import { describe, expect, it, vi } from 'vitest';
import { minutes } from '../../../src/core/options.js';
import { TOPIC, receiveMany, section } from '../../support/scripted-consumer.js';
import { PATIENCE_MS, reconnected, start } from './wire-consumer-kit.js';

describe('a lost connection', () => {
  it('forgets what waits: the broker sends it again at once, and a late request would count (N-16, N-29)', async () => {
    const { subscription, next, after, server, clock } = await start();
    subscription.negativeAcknowledge(await next(1));
    server.peers.at(-1)?.cut();
    await reconnected(server, clock);
    const copy = await next(1);

    expect(copy).toMatchObject({ redeliveryCount: 0, connection: 2 });
    expect(await after(minutes(5))).toEqual([]);
  });

  it('makes the negative acknowledgement of an older message mean nothing, its copy counts (N-29)', async () => {
    const { subscription, next, after, server, clock } = await start();
    const old = await next(1);
    server.peers.at(-1)?.cut();
    await reconnected(server, clock);
    const copy = await next(1);
    subscription.negativeAcknowledge(old);
    const asked = await after(minutes(5));
    subscription.negativeAcknowledge(copy);

    expect(asked).toEqual([]);
    expect(await after(60_000)).toEqual([[1]]);
  });

  it('makes one by message or id mean nothing while it lasts, without an error (N-32)', async () => {
    const lost = vi.fn();
    const { subscription, next, after, server, clock } = await start();
    const message = await next(1);
    subscription.onState(({ state }) => {
      if (state === 'lost') lost();
    });
    server.peers.at(-1)?.cut();
    await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce(), { timeout: PATIENCE_MS });
    subscription.negativeAcknowledge(message);
    subscription.negativeAcknowledgeId(message.id);
    subscription.negativeAcknowledgeId({ ...message.id, topic: '' });
    await reconnected(server, clock);

    expect(await after(minutes(5))).toEqual([]);
  });

  it('of one topic leaves what waits for the others', async () => {
    const topics = [TOPIC, `${TOPIC}2`];
    const { subscription, deliver, say, after, settled, consumerIds } = await start({ topics });
    const [one = 0, two = 0] = consumerIds();
    deliver(0, section('x'), { consumerId: one });
    deliver(1, section('x'), { consumerId: two });
    for (const message of await receiveMany(subscription, 2)) subscription.negativeAcknowledge(message);
    say('CLOSE_CONSUMER', { consumerId: one, requestId: -1 });
    await settled();

    expect(await after(60_000)).toEqual([[1]]);
  });

  it('standing by on Failover does the same: another consumer is sent everything', async () => {
    const { subscription, next, after, say, consumerId, settled } = await start({ type: 'failover' });
    subscription.negativeAcknowledge(await next(1));
    say('ACTIVE_CONSUMER_CHANGE', { consumerId, isActive: false });
    await settled();

    expect(await after(minutes(5))).toEqual([]);
  });
});

describe('partitions', () => {
  it('each is asked by its own consumer, and ids of two partitions are told apart', async () => {
    const { subscription, deliver, after, all, consumerIds } = await start(
      {},
      {
        PARTITIONED_METADATA: ({ requestId }, peer) =>
          peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: 2, response: 0 }),
      },
    );
    const consumers = consumerIds();
    for (const consumerId of consumers) deliver(5, section('x'), { consumerId });
    const [one, two] = await receiveMany(subscription, 2);
    subscription.negativeAcknowledge(one!);
    subscription.negativeAcknowledge(two!);
    await subscription.acknowledge([one!.id]);
    await after(60_000);

    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES').map(({ consumerId }) => consumerId)).toEqual([
      consumers[two!.id.partition],
    ]);
  });
});

describe('a request for redelivery that concerns several topics', () => {
  it('is made for all of them or none: a repeated part would count twice', async () => {
    const topics = [TOPIC, `${TOPIC}2`];
    const { subscription, deliver, all, say, settled, consumerIds } = await start({ topics, prefetch: 20 });
    const consumers = consumerIds();
    for (const consumerId of consumers) deliver(1, section('x'), { consumerId });
    const messages = await receiveMany(subscription, 2);
    say('CLOSE_CONSUMER', { consumerId: consumers[1]!, requestId: -1 });
    await settled();

    await expect(subscription.redeliver(messages.map(({ id }) => id))).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
    });
    await settled();
    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toEqual([]);
  });
});
