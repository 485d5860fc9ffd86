// Seeks, and what a broker tells of a topic, against a scripted server: orders that a real broker does not produce on demand.
import { describe, expect, it } from 'vitest';
import { TOPIC, never, receiveMany, section, startSubscription, textOf } from '../../support/scripted-consumer.js';

describe('seek', () => {
  const orders = ['the broker closes before it answers', 'the broker answers before it closes', 'it never closes'];
  it.each(orders)('ends attached again, whatever the order: %s', async (order) => {
    const { subscription, deliver, consumerId, all } = await startSubscription(
      {},
      {
        SEEK: ({ requestId }, peer) => {
          const close = (): void => peer.send('CLOSE_CONSUMER', { consumerId, requestId: -1 });
          if (order.includes('before it answers')) close();
          peer.send('SUCCESS', { requestId });
          if (order.includes('before it closes')) close();
        },
      },
    );
    deliver(5, section('old'));
    await subscription.seek('earliest');
    deliver(0, section('first'));

    expect(textOf(await subscription.receive(never))).toBe('first');
    expect(all('SUBSCRIBE')).toHaveLength(2);
  });

  it('while it is under way nothing is settled: it would settle what was asked for again', async () => {
    let answer = (): void => undefined;
    const { subscription, deliver, server, all } = await startSubscription(
      {},
      { SEEK: ({ requestId }, peer) => (answer = () => peer.send('SUCCESS', { requestId })) },
    );
    deliver(5, section('old'));
    const [old] = await receiveMany(subscription, 1);
    const seeking = subscription.seek(new Date(1_000));
    await server.command('SEEK');

    await expect(subscription.acknowledge([old!.id])).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    answer();
    await seeking;

    expect(all('ACK')).toEqual([]);
    expect(all('SEEK')).toMatchObject([{ messagePublishTime: 1_000 }]);
  });

  it('that the broker refuses leaves the subscription as it was', async () => {
    const { subscription, deliver, all } = await startSubscription(
      {},
      { SEEK: ({ requestId }, peer) => peer.send('ERROR', { requestId, error: 1, message: 'no' }) },
    );
    deliver(5, section('old'));

    await expect(subscription.seek('latest')).rejects.toMatchObject({ code: 'BROKER_ERROR' });
    expect(textOf(await subscription.receive(never))).toBe('old');
    expect(all('SUBSCRIBE')).toHaveLength(1);
  });
});

describe('what a subscription is told of its topic', () => {
  it('that nothing will come any more', async () => {
    const { subscription, say, consumerId, settled, lines } = await startSubscription();
    const before = subscription.hasReachedEnd();
    say('REACHED_END_OF_TOPIC', { consumerId });
    await settled();

    expect([before, subscription.hasReachedEnd()]).toEqual([false, true]);
    expect(lines).toMatchObject([{ level: 'info', text: expect.stringMatching(/"s" is at the end of persistent/) }]);
  });

  it('its last message, or that it has none', async () => {
    let last = { ledgerId: 7, entryId: 3, batchIndex: 4 };
    const { subscription } = await startSubscription(
      {},
      {
        GET_LAST_MESSAGE_ID: ({ requestId }, peer) =>
          peer.send('GET_LAST_MESSAGE_ID_RESPONSE', { requestId, lastMessageId: last }),
      },
    );
    const some = await subscription.lastMessageIds();
    last = { ledgerId: -1, entryId: -1, batchIndex: -1 };
    const none = await subscription.lastMessageIds();

    expect([some.get(TOPIC), none.get(TOPIC)]).toMatchObject([{ ledgerId: 7, entryId: 3, batchIndex: 4 }, undefined]);
  });
});
