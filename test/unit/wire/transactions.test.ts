// Transactions against a scripted cluster: what is asked of the coordinators and when, what a broker must never get after
// the end, and answers that are lost.
import { describe, expect, it, vi } from 'vitest';
import { days } from '../../../src/core/options.js';
import { TOPIC } from '../../support/scripted-consumer.js';
import type { Script } from '../../support/wire-server.js';
import {
  COORDINATORS,
  message,
  NOT_FOUND,
  start,
  all,
  order,
  count,
  passes,
  inVirtualTime,
} from './transaction-kit.js';

const SERVICE_NOT_READY = 6;

describe('coordinators', () => {
  it('are found once each, and new transactions go to them in turn, with the time limit in milliseconds', async () => {
    const { client, server } = await start();

    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await client.newTransaction({ timeoutMs: 1_500 })).id);

    expect(ids.map(({ mostBits }) => mostBits)).toEqual([0n, 1n, 0n]);
    expect(all(server, 'NEW_TXN').map(({ tcId, txnTtlSeconds }) => [tcId, txnTtlSeconds])).toEqual([
      [0, 1_500],
      [1, 1_500],
      [0, 1_500],
    ]);
    expect(all(server, 'LOOKUP').map(({ topic }) => topic)).toEqual(
      [0, 1].map((i) => `${COORDINATORS}-partition-${i}`),
    );
    expect(all(server, 'TC_CLIENT_CONNECT_REQUEST').map(({ tcId }) => tcId)).toEqual([0, 1]);
    expect(count(server, 'PARTITIONED_METADATA')).toBe(1);
  });

  it('are asked for without making the topic that stands for them', async () => {
    const { client, server } = await start({
      CONNECT: (_, peer) => {
        const featureFlags = { supportsGetPartitionedMetadataWithoutAutoCreation: true };
        peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 20, featureFlags });
      },
    });
    await client.newTransaction();

    expect(all(server, 'PARTITIONED_METADATA')[0]).toMatchObject({ metadataAutoCreationEnabled: false });
    expect(all(server, 'NEW_TXN')[0]?.txnTtlSeconds).toBe(60_000);
  });

  it.each([
    [
      'none',
      {
        PARTITIONED_METADATA: ({ requestId }, peer) =>
          peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: 0, response: 0 }),
      },
    ],
    [
      'no topic for them',
      {
        PARTITIONED_METADATA: ({ requestId }, peer) =>
          peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, response: 1, error: 11, message: 'none' }),
      },
    ],
    [
      'one that refuses',
      {
        TC_CLIENT_CONNECT_REQUEST: ({ requestId }, peer) =>
          peer.send('ERROR', { requestId, error: 22, message: 'switched off' }),
      },
    ],
  ] as [string, Script][])('a cluster with %s has no transactions', async (_, script) => {
    const { client } = await start(script);
    const expected = { code: 'TRANSACTIONS_UNAVAILABLE', retriable: false };

    await expect(client.newTransaction()).rejects.toMatchObject(expected);
  });

  it('one that moved is looked up again, and asked the same', async () => {
    let moved = 2;
    const { client, server } = await start({
      ADD_PARTITION_TO_TXN: ({ requestId }, peer) => {
        const error = moved-- > 0 ? { error: NOT_FOUND.coordinator, message: 'it moved' } : {};
        peer.send('ADD_PARTITION_TO_TXN_RESPONSE', { requestId, ...error });
      },
    });
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction();
    await publisher.publish(message('a'), 0, { transaction });
    await transaction.commit();

    const asked = all(server, 'ADD_PARTITION_TO_TXN');
    expect(asked.map(({ partitions }) => partitions)).toEqual([[TOPIC], [TOPIC], [TOPIC]]);
    expect(count(server, 'TC_CLIENT_CONNECT_REQUEST')).toBe(3);
    expect(count(server, 'SEND')).toBe(1);
    expect(transaction.state).toBe('committed');
  });

  it('one that has too many transactions does not answer: the call times out', async () => {
    const settings = { ...inVirtualTime(), operationTimeoutMs: 1_000 };
    const { client, server } = await start({ NEW_TXN: () => undefined }, settings);
    const beginning = client.newTransaction().catch((error: unknown) => error);
    await server.command('NEW_TXN');
    await settings.clock.advanceBy(30_000);

    expect(await beginning).toMatchObject({ code: 'CALL_TIMED_OUT' });
  });

  it('options are checked, all of them at once', async () => {
    const { client } = await start();
    const wrong = { timeoutMs: 0, timeout: 5 };

    const error = await client.newTransaction(wrong).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'CONFIGURATION_INVALID' });
    expect((error as { problems: readonly string[] }).problems).toHaveLength(2);
  });
});

describe('the end of a transaction', () => {
  it('waits for receipts and answers, and nothing is let in after it was asked for (T-02, T-03)', async () => {
    const held: (() => void)[] = [];
    const { client, server } = await start({
      SEND: ({ producerId, sequenceId }, peer) =>
        held.push(() => peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 1, entryId: 0 } })),
    });
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction();
    const first = publisher.publish(message('a'), 0, { transaction });
    const committing = transaction.commit();
    const late = publisher.publish(message('b'), 1, { transaction });

    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_ENDED', retriable: false });
    await server.command('SEND');
    expect([transaction.state, count(server, 'END_TXN')]).toEqual(['committing', 0]);
    held.forEach((answer) => answer());
    await Promise.all([first, committing, transaction.commit()]);

    expect(order(server, ['SEND', 'END_TXN'])).toEqual(['SEND', 'END_TXN']);
    expect(all(server, 'END_TXN')[0]).toMatchObject({ txnAction: 0, txnidMostBits: 0n, txnidLeastBits: 7n });
    await expect(publisher.publish(message('c'), 2, { transaction })).rejects.toThrow('it is committed');
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    await expect(transaction.abort()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(count(server, 'SEND')).toBe(1);
  });

  it('a commit sends what is gathered at once', async () => {
    const { client, server } = await start();
    const publisher = await client.publisher(TOPIC, { batching: { maxDelayMs: days(1) } });
    const transaction = await client.newTransaction();
    const first = publisher.publish(message('a'), 0, { transaction });
    await vi.waitFor(() => {
      publisher.flush();
      expect(count(server, 'SEND')).toBe(1);
    });
    await first;
    const second = publisher.publish(message('b'), 1, { transaction });
    await transaction.commit();

    expect(await second).toMatchObject({ entryId: 1 });
  });

  it('a commit that finds the transaction gone was not done', async () => {
    const { client } = await start({
      END_TXN: ({ requestId }, peer) =>
        peer.send('END_TXN_RESPONSE', { requestId, error: NOT_FOUND.transaction, message: 'gone' }),
    });
    const transaction = await client.newTransaction();

    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(transaction.state).toBe('timed-out');
  });

  it.each([
    ['the transaction gone', NOT_FOUND.transaction],
    ['its state wrong', NOT_FOUND.status],
  ])('a commit whose answer was lost, and that then finds %s, may have been done (T-04)', async (_, error) => {
    let asked = 0;
    const { client } = await start({
      END_TXN: ({ requestId }, peer) => {
        if (asked++ === 0) peer.cut();
        else peer.send('END_TXN_RESPONSE', { requestId, error, message: 'gone' });
      },
    });
    const transaction = await client.newTransaction();

    const expected = { code: 'TRANSACTION_OUTCOME_UNKNOWN', retriable: false };
    await expect(transaction.commit()).rejects.toMatchObject(expected);
    expect(transaction.state).toBe('error');
    await expect(transaction.abort()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
  });

  it('a coordinator that moved has not committed: the repeated request tells', async () => {
    let asked = 0;
    const { client, server } = await start({
      END_TXN: ({ requestId }, peer) => {
        const error = asked++ === 0 ? NOT_FOUND.coordinator : NOT_FOUND.transaction;
        peer.send('END_TXN_RESPONSE', { requestId, error, message: 'elsewhere' });
      },
    });
    const transaction = await client.newTransaction();

    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(count(server, 'TC_CLIENT_CONNECT_REQUEST')).toBe(2);
  });

  it('a commit without any answer is unknown', async () => {
    const settings = { ...inVirtualTime(), operationTimeoutMs: 1_000 };
    const { client, server } = await start({ END_TXN: () => undefined }, settings);
    const transaction = await client.newTransaction();
    const committing = transaction.commit().catch((error: unknown) => error);
    await server.command('END_TXN');
    await settings.clock.advanceBy(30_000);

    expect(await committing).toMatchObject({ code: 'TRANSACTION_OUTCOME_UNKNOWN' });
  });

  it('an abort whose answer was lost is done when the transaction is gone', async () => {
    let asked = 0;
    const { client } = await start({
      END_TXN: ({ requestId }, peer) => {
        if (asked++ === 0) peer.cut();
        else peer.send('END_TXN_RESPONSE', { requestId, error: NOT_FOUND.transaction, message: 'gone' });
      },
    });
    const transaction = await client.newTransaction();
    await transaction.abort();

    expect(transaction.state).toBe('aborted');
  });

  it('its time is over here before it is there: nothing more goes into it, and it is aborted', async () => {
    const settings = inVirtualTime();
    const { client, server } = await start({}, settings);
    const publisher = await client.publisher(TOPIC);
    const transaction = await client.newTransaction({ timeoutMs: 1_000 });
    await settings.clock.advanceBy(1_000);

    await expect(publisher.publish(message('a'), 0, { transaction })).rejects.toThrow('its time of 1000 ms was over');
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(transaction.state).toBe('timed-out');
    expect(await server.command('END_TXN')).toMatchObject({ txnAction: 1 });
    expect(count(server, 'SEND')).toBe(0);
  });

  it('a message without a receipt is not sent again once the time is over', async () => {
    const settings = inVirtualTime();
    let sends = 0;
    const { client, server } = await start(
      {
        SEND: ({ producerId, sequenceId }, peer) => {
          const messageId = { ledgerId: 1, entryId: 0 };
          if (++sends > 2) peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId });
        },
      },
      settings,
    );
    const publisher = await client.publisher(TOPIC, { batching: false });
    const transaction = await client.newTransaction({ timeoutMs: 1_000 });
    const publishing = publisher.publish(message('a'), 0, { transaction }).catch((error: unknown) => error);
    await server.command('SEND');
    const plain = publisher.publish(message('b'), 1);
    await server.command('SEND', 2);
    await settings.clock.advanceBy(1_000);
    server.peers.at(-1)?.cut();
    await passes(settings.clock, () => count(server, 'SEND') > 2);

    expect(await publishing).toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(await plain).toMatchObject({ entryId: 0 });
    expect(all(server, 'SEND').map(({ sequenceId }) => sequenceId)).toEqual([0, 1, 1]);
  });

  it('a commit that could not be asked for may be asked for again, or aborted instead', async () => {
    let isThere = true;
    const { client, server } = await start(
      {
        TC_CLIENT_CONNECT_REQUEST: ({ requestId }, peer) =>
          peer.send('TC_CLIENT_CONNECT_RESPONSE', isThere ? { requestId } : { requestId, error: SERVICE_NOT_READY }),
      },
      { operationTimeoutMs: 0 },
    );
    await client.publisher(TOPIC);
    const transactions = [await client.newTransaction(), await client.newTransaction()];
    isThere = false;
    server.peers.at(-1)?.cut();
    await server.command('PRODUCER', 2);
    for (const transaction of transactions) {
      await expect(transaction.commit()).rejects.toMatchObject({ retriable: true });
      expect(transaction.state).toBe('committing');
    }
    expect(count(server, 'END_TXN')).toBe(0);
    isThere = true;

    await transactions[0]?.commit();
    await transactions[1]?.abort();

    expect(transactions.map(({ state }) => state)).toEqual(['committed', 'aborted']);
    expect(all(server, 'END_TXN').map(({ txnAction }) => txnAction)).toEqual([0, 1]);
  });

  it('a client that closes waits for a commit that is under way', async () => {
    let answer = (): void => undefined;
    const { client, server } = await start({
      END_TXN: ({ requestId }, peer) => void (answer = () => peer.send('END_TXN_RESPONSE', { requestId })),
    });
    const transaction = await client.newTransaction();
    const committing = transaction.commit();
    await server.command('END_TXN');
    const closing = client.close();
    answer();

    await Promise.all([committing, closing]);

    expect(transaction.state).toBe('committed');
  });

  it('a client that closes aborts what is open', async () => {
    const { client, server } = await start();
    const transaction = await client.newTransaction();
    await client.close();

    expect(all(server, 'END_TXN').map(({ txnAction }) => txnAction)).toEqual([1]);
    expect(transaction.state).toBe('aborted');
  });
});
