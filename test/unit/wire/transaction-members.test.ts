// What belongs to a transaction, against a scripted cluster: messages and acknowledgements, and what goes before them.
import { describe, expect, it } from 'vitest';
import type { Transaction, WireConsumerOptions } from '../../../src/wire.js';
import type { Script } from '../../support/wire-server.js';
import { TOPIC, batchSection, receiveMany, section } from '../../support/scripted-consumer.js';
import { message, NOT_FOUND, start, subscribed, all, order, count, entries } from './transaction-kit.js';

describe('messages of a transaction', () => {
  it('wait until the coordinator knows their partition, once each, and carry the transaction twice', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction();
    await Promise.all(['a', 'b'].map((text) => publisher.publish(message(text), undefined, { transaction })));
    await publisher.publish(message('c'), undefined, { transaction });

    expect(order(server, ['ADD_PARTITION_TO_TXN', 'SEND'])).toEqual(['ADD_PARTITION_TO_TXN', 'SEND', 'SEND']);
    const [send] = all(server, 'SEND');
    expect(send).toMatchObject({ numMessages: 2, txnidMostBits: 0n, txnidLeastBits: 7n });
    expect(entries(server)[0]).toMatchObject({ numMessagesInBatch: 2, txnidMostBits: 0n, txnidLeastBits: 7n });
    expect(entries(server)[1]).toMatchObject({ txnidMostBits: 0n, txnidLeastBits: 7n });
  });

  it('keep their place among those published before and after, and share no batch with them', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, { batching: { maxDelayMs: 20 } });
    const one = await client.newTransaction();
    const other = await client.newTransaction();
    const publishing = [undefined, one, one, other, undefined, undefined].map((transaction, sequenceId) =>
      publisher.publish(message(`${sequenceId}`), sequenceId, { transaction }),
    );
    await Promise.all(publishing);

    const sent = entries(server).map(({ sequenceId, numMessagesInBatch = 1, txnidMostBits }) => {
      return [sequenceId, numMessagesInBatch, txnidMostBits];
    });
    expect(sent).toEqual([
      [0, 1, undefined],
      [1, 2, 0n],
      [3, 1, 1n],
      [4, 2, undefined],
    ]);
  });

  it('of several transactions do not wait in turn: the coordinator is told of all at once', async () => {
    const asked: (() => void)[] = [];
    const { client, server } = await start({
      ADD_PARTITION_TO_TXN: ({ requestId }, peer) =>
        void asked.push(() => peer.send('ADD_PARTITION_TO_TXN_RESPONSE', { requestId })),
    });
    const publisher = await client.publisher('t', { batching: false });
    const transactions = [await client.newTransaction(), await client.newTransaction()];
    const receipts = transactions.map((transaction, n) =>
      publisher.publish(message(`${n}`), undefined, { transaction }),
    );
    await server.command('ADD_PARTITION_TO_TXN', 2);
    // The second one's place is behind the first all the same.
    for (const answer of asked.toReversed()) answer();
    await Promise.all(receipts);

    expect(entries(server).map(({ sequenceId }) => sequenceId)).toEqual([0, 1]);
  });

  it('all chunks of one carry it', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, { batching: false, chunking: true });
    const transaction = await client.newTransaction();
    const large = { payload: Buffer.alloc(250_000), properties: {} };
    await publisher.publish(large, undefined, { transaction });

    expect(all(server, 'SEND').map(({ txnidLeastBits }) => txnidLeastBits)).toEqual([7n, 7n, 7n]);
    expect(entries(server).map(({ txnidLeastBits }) => txnidLeastBits)).toEqual([7n, 7n, 7n]);
  });

  it('none is sent where the coordinator refuses the partition, and what follows goes on', async () => {
    const { client, server } = await start({
      ADD_PARTITION_TO_TXN: ({ requestId }, peer) =>
        peer.send('ADD_PARTITION_TO_TXN_RESPONSE', { requestId, error: NOT_FOUND.status, message: 'no' }),
    });
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction();
    const refused = publisher.publish(message('a'), 0, { transaction }).catch((error: unknown) => error);
    await publisher.publish(message('b'), 1);

    expect(await refused).toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(all(server, 'SEND').map(({ sequenceId }) => sequenceId)).toEqual([1]);
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
  });

  it('that wait for the coordinator are sent before their publisher closes, and what waits behind them', async () => {
    let answer = (): void => undefined;
    const { client, server } = await start({
      ADD_PARTITION_TO_TXN: ({ requestId }, peer) =>
        void (answer = () => peer.send('ADD_PARTITION_TO_TXN_RESPONSE', { requestId })),
    });
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction();
    const publishing = [
      publisher.publish(message('a'), undefined, { transaction }),
      publisher.publish(message('plain'), undefined),
    ];
    await server.command('ADD_PARTITION_TO_TXN');

    const closed = publisher.close();
    answer();

    expect(await Promise.allSettled(publishing)).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }]);
    await closed;
    await transaction.commit();
  });

  it('something else in the place of a transaction is refused by name', async () => {
    const { client } = await start();
    const publisher = await client.publisher(TOPIC);
    const publishing = publisher.publish(message('a'), 0, { transaction: {} as Transaction });

    await expect(publishing).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    await expect(publisher.publish(message('a'), 0, { txn: 1 } as object)).rejects.toThrow('unknown option "txn"');
  });
});

describe('acknowledgements in a transaction', () => {
  it('wait until the coordinator knows the subscription, and name nothing but what was given (T-10)', async () => {
    const { subscription, client, server, deliver } = await subscribed({ type: 'shared' });
    deliver(1, section('a'));
    deliver(2, batchSection(['b', 'c', 'd']));
    const [a, b, c, d] = await receiveMany(subscription, 4);
    const transaction = await client.newTransaction();
    await subscription.acknowledge([b!.id]); // Not in it: what follows must not name it again.

    await subscription.acknowledge([a!.id, c!.id], { transaction });
    await subscription.acknowledge([d!.id], { transaction });

    const [added, ...further] = all(server, 'ADD_SUBSCRIPTION_TO_TXN');
    expect(added).toMatchObject({ subscription: [{ topic: TOPIC, subscription: 's' }] });
    expect(further).toEqual([]);
    const [, first, second] = all(server, 'ACK');
    const txn = { txnidMostBits: 0n, txnidLeastBits: 7n };
    expect(first).toMatchObject({ ...txn, ackType: 0, requestId: expect.any(Number) as number });
    expect(first?.messageId).toMatchObject([{ entryId: 1 }, { entryId: 2, ackSet: [0b101n], batchSize: 3 }]);
    expect(second?.messageId).toMatchObject([{ entryId: 2, ackSet: [0b011n], batchSize: 3 }]);
  });

  it('the last one of a batch, once committed, ends with the whole entry', async () => {
    const { subscription, client, server, deliver } = await subscribed({ type: 'shared' });
    deliver(2, batchSection(['a', 'b']));
    const [a, b] = await receiveMany(subscription, 2);
    const transaction = await client.newTransaction();
    await subscription.acknowledge([a!.id], { transaction });
    await subscription.acknowledge([b!.id]);
    expect(count(server, 'ACK')).toBe(2);

    await transaction.commit();
    const whole = await server.command('ACK', 3);

    expect(whole.messageId).toEqual([{ ledgerId: 1, entryId: 2 }]);
    expect(whole.txnidLeastBits).toBeUndefined();
  });

  it('one of a batch that somebody else has in a transaction is told as acknowledged to nobody, and comes when that is aborted', async () => {
    const { subscription, client, server, deliver } = await subscribed({ type: 'shared' });
    deliver(2, batchSection(['a', 'b', 'c']), { ackSet: [0b101n] });
    const [a, c] = await receiveMany(subscription, 2);
    const transaction = await client.newTransaction();
    await subscription.acknowledge([a!.id]);
    await subscription.acknowledge([c!.id], { transaction });
    await transaction.commit();
    deliver(2, batchSection(['a', 'b', 'c']), { ackSet: [0b010n], redeliveryCount: 1 });
    const [b] = await receiveMany(subscription, 1);
    const told = all(server, 'ACK').flatMap(({ messageId }) => messageId);
    await subscription.acknowledge([b!.id]);

    expect([a, c, b].map((one) => Buffer.from(one!.payload!).toString())).toEqual(['a', 'c', 'b']);
    expect(told.map((id) => id?.ackSet)).toEqual([[0b110n], [0b011n]]);
    expect(all(server, 'ACK').at(-1)?.messageId).toEqual([{ ledgerId: 1, entryId: 2 }]);
  });

  it('a conflict fails the call, and the commit aborts', async () => {
    const { subscription, client, server, deliver } = await subscribed(
      { type: 'shared' },
      {
        ACK: ({ consumerId, requestId }, peer) =>
          peer.send('ACK_RESPONSE', { consumerId, requestId, error: NOT_FOUND.conflict, message: 'taken' }),
      },
    );
    deliver(1, section('a'));
    const [a] = await receiveMany(subscription, 1);
    const transaction = await client.newTransaction();
    const acknowledging = subscription.acknowledge([a!.id], { transaction });

    await expect(acknowledging).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT', retriable: false });
    const cause = { code: 'TRANSACTION_CONFLICT' };
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause });
    expect(all(server, 'END_TXN').map(({ txnAction }) => txnAction)).toEqual([1]);
    expect(transaction.state).toBe('aborted');
  });

  it('one without an answer when the consumer is detached fails at once', async () => {
    const { subscription, client, server, deliver, say, consumerId } = await subscribed({}, { ACK: () => undefined });
    deliver(1, section('a'));
    const [a] = await receiveMany(subscription, 1);
    const transaction = await client.newTransaction();
    const acknowledging = subscription.acknowledge([a!.id], { transaction }).catch((error: unknown) => error);
    await server.command('ACK');
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });

    expect(await acknowledging).toMatchObject({ code: 'CONNECTION_LOST' });
  });

  it.each(['shared', 'exclusive', 'failover'] as const)(
    'after an abort on %s nothing is asked for: where nothing comes by itself, whoever aborts does it (T-17)',
    async (type) => {
      const { subscription, client, server, deliver, settled } = await subscribed({ type });
      deliver(1, section('a'));
      const [a] = await receiveMany(subscription, 1);
      const transaction = await client.newTransaction();
      await subscription.acknowledge([a!.id], { transaction });
      await transaction.abort();
      await settled();
      const names = ['END_TXN', 'REDELIVER_UNACKNOWLEDGED_MESSAGES'] as const;
      expect(order(server, names)).toEqual(['END_TXN']);

      await subscription.redeliver([a!.id]);
      await settled();
      expect(order(server, names)).toEqual(names);
    },
  );
});

describe('an acknowledgement that failed', () => {
  const failed = async (options: Partial<WireConsumerOptions>, script: Script) => {
    const world = await subscribed({ type: 'shared', ...options }, script);
    world.deliver(1, section('a'));
    const [a] = await receiveMany(world.subscription, 1);
    const transaction = await world.client.newTransaction();
    const acknowledge = () => world.subscription.acknowledge([a!.id], { transaction }).catch((error: unknown) => error);
    return { ...world, transaction, acknowledge };
  };

  it('because the coordinator did not take the subscription was not sent', async () => {
    const { acknowledge, server } = await failed(
      {},
      {
        ADD_SUBSCRIPTION_TO_TXN: ({ requestId }, peer) =>
          peer.send('ADD_SUBSCRIPTION_TO_TXN_RESPONSE', { requestId, error: NOT_FOUND.status, message: 'no' }),
      },
    );
    expect(await acknowledge()).toMatchObject({ code: 'TRANSACTION_ENDED', sent: false });
    expect(count(server, 'ACK')).toBe(0);
  });

  it('because its connection was gone was not sent, also when the coordinator had taken it', async () => {
    let answer = (): void => undefined;
    let subscribes = 0;
    const { acknowledge, server, say, consumerId } = await failed(
      {},
      {
        ADD_SUBSCRIPTION_TO_TXN: ({ requestId }, peer) =>
          void (answer = () => peer.send('ADD_SUBSCRIPTION_TO_TXN_RESPONSE', { requestId })),
        SUBSCRIBE: ({ requestId }, peer) => {
          if (subscribes++ === 0) peer.send('SUCCESS', { requestId });
        },
      },
    );
    const failure = acknowledge();
    await server.command('ADD_SUBSCRIPTION_TO_TXN');
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    answer();
    expect(await failure).toMatchObject({ code: 'CONNECTION_LOST', sent: false });
    expect(count(server, 'ACK')).toBe(0);
  });

  it('because the broker refused it was sent', async () => {
    const { acknowledge } = await failed(
      {},
      {
        ACK: ({ consumerId, requestId }, peer) =>
          peer.send('ACK_RESPONSE', { consumerId, requestId, error: NOT_FOUND.conflict, message: 'taken' }),
      },
    );
    expect(await acknowledge()).toMatchObject({ code: 'TRANSACTION_CONFLICT', sent: true });
  });

  it('because its connection was lost before the answer may have been sent', async () => {
    const { acknowledge, server, say, consumerId } = await failed({}, { ACK: () => undefined });
    const failure = acknowledge();
    await server.command('ACK');
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    expect(await failure).toMatchObject({ code: 'CONNECTION_LOST', sent: true });
  });
});
