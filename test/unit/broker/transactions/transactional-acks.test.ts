// Acknowledgements in transactions through the broker: what its consumers get, and do not get, while a transaction is open and
// once it has ended (T-10 to T-20, T-41).
import { describe, expect, it } from 'vitest';
import { LoggedPendingAckStore } from '../../../../src/broker/transactions/logged-pending-ack-store.js';
import { memoryPendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import type { PendingAckStoreProvider } from '../../../../src/broker/transactions/pending-ack-store.js';
import type { SubscriptionType } from '../../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { TestClient } from '../broker-kit.js';
import { TestBroker, TOPIC } from '../broker-kit.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import { A, B } from './pending-ack-kit.js';
import { ackIn, worldWith } from './transactional-acks-kit.js';

const SHARED_TYPES: readonly SubscriptionType[] = ['shared', 'key-shared'];
const SINGLE_TYPES: readonly SubscriptionType[] = ['exclusive', 'failover'];

describe.each(SHARED_TYPES)('on %s', (type) => {
  it('a committed acknowledgement counts, and not before (T-16)', async () => {
    const { broker, end } = await worldWith();
    const client = await broker.connect(type);
    await broker.publish('a@k', 'b@k');
    await ackIn(A, client, 'a@k', 'b@k');
    expect(broker.stats().backlog).toBe(2);
    await end(A, 'COMMITTED');
    expect(broker.stats().backlog).toBe(0);
  });

  it('an aborted one comes again by itself, with its count raised, and nothing else does (T-17)', async () => {
    const { broker, end } = await worldWith();
    const client = await broker.connect(type);
    await broker.publish('a@k', 'b@k', 'c@k');
    await ackIn(A, client, 'a@k', 'c@k');
    client.take();
    await end(A, 'ABORTED');
    expect(client.take()).toBe('a@k* c@k*');
  });

  it('what is pending goes to nobody when its consumer leaves, until the transaction aborts (T-15)', async () => {
    const { broker, end } = await worldWith();
    const first = await broker.connect(type, 'c1');
    await broker.publish('a@k', 'b@k');
    await ackIn(A, first, 'a@k');
    const second = await broker.connect(type, 'c2');
    await first.close();
    expect(second.take()).toBe('b@k');
    await end(A, 'ABORTED');
    expect(second.take()).toBe('a@k*');
  });

  it('nor to one that comes when nobody is connected, and reads everything that is left (T-15)', async () => {
    const { broker, end } = await worldWith();
    const first = await broker.connect(type, 'c1');
    await broker.publish('a@k', 'b@k');
    await ackIn(A, first, 'a@k');
    await first.close();
    const second = await broker.connect(type, 'c2');
    expect(second.take()).toBe('b@k');
    await end(A, 'ABORTED');
    expect(second.take()).toBe('a@k*');
  });

  it('the same where nobody is connected for a while: it is sent once (T-15)', async () => {
    const { broker, end } = await worldWith();
    const first = await broker.connect(type, 'c1');
    await broker.publish('a@k', 'b@k');
    await ackIn(A, first, 'a@k');
    await first.close();
    const second = await broker.connect(type, 'c2', { permits: 0 });
    await end(A, 'ABORTED');
    await second.flow(10);
    expect(second.take()).toBe('a@k b@k');
  });

  it('a pending one that is asked back does nothing (T-15)', async () => {
    const { broker } = await worldWith();
    const client = await broker.connect(type);
    await broker.publish('a@k');
    await ackIn(A, client, 'a@k');
    client.take();
    await client.nack('a@k');
    expect(client.take()).toBe('');
  });

  it('it lowers what is unacknowledged at once, so that more may come (T-19)', async () => {
    const { broker } = await worldWith({ maxUnackedPerConsumer: 1 });
    const client = await broker.connect(type, 'c1');
    await broker.publish('a@k', 'b@k');
    expect(client.take()).toBe('a@k');
    await ackIn(A, client, 'a@k');
    expect(client.take()).toBe('b@k');
  });

  it('a cumulative one is refused, as without a transaction (T-19)', async () => {
    const { broker } = await worldWith();
    const client = await broker.connect(type);
    await broker.publish('a@k');
    const refused = client.handle.acknowledgeCumulativeIn(A, client.id('a@k'));
    await expect(refused).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });
});

it('on Key_Shared a key whose message failed waits for the commit, not for the acknowledgement (K-28)', async () => {
  const { broker, end } = await worldWith();
  const client = await broker.connect('key-shared', 'c1', { permits: 2 });
  await broker.publish('a@k', 'b@k', 'c@k');
  await client.fail(['a@k'], ['b@k']);
  await client.flow(10);
  client.take();
  await ackIn(A, client, 'a@k');
  expect(client.take()).toBe('');
  await end(A, 'COMMITTED');
  expect(client.take()).toBe('b@k c@k');
});

describe.each(SINGLE_TYPES)('on %s', (type) => {
  const connect = async (broker: TestBroker, name = 'c1'): Promise<TestClient> => {
    const client = await broker.connect(type, name);
    await broker.clock.advanceBy(1_000);
    return client;
  };

  it('an abort sends nothing again by itself: the consumer asks for it (T-17)', async () => {
    const { broker, end } = await worldWith();
    const client = await connect(broker);
    await broker.publish('a', 'b');
    await ackIn(A, client, 'a');
    client.take();
    await end(A, 'ABORTED');
    expect(client.take()).toBe('');
    client.handle.redeliverAll();
    await settlePromises();
    expect(client.take()).toBe('a b');
  });

  it('asked for while it is pending, it is not sent (T-15)', async () => {
    const { broker } = await worldWith();
    const client = await connect(broker);
    await broker.publish('a', 'b');
    await ackIn(A, client, 'a');
    client.take();
    client.handle.redeliverAll();
    await settlePromises();
    expect(client.take()).toBe('b');
  });

  it('a consumer that came meanwhile, and was never sent it, gets it after an abort (T-17)', async () => {
    const { broker, end } = await worldWith();
    const first = await connect(broker);
    await broker.publish('a', 'b');
    await ackIn(A, first, 'a');
    await first.close();
    const second = await connect(broker, 'c2');
    expect(second.take()).toBe('b');
    await end(A, 'ABORTED');
    expect(second.take()).toBe('a b');
  });

  it('a cumulative one counts with the commit, and is only free after an abort (T-16, T-17)', async () => {
    const { broker, end } = await worldWith();
    const client = await connect(broker);
    await broker.publish('a', 'b', 'c');
    await client.handle.acknowledgeCumulativeIn(A, client.id('b'));
    const late = client.handle.acknowledgeCumulativeIn(B, client.id('c'));
    await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' });
    client.take();
    await end(A, 'ABORTED');
    expect(client.take()).toBe('');
    await client.handle.acknowledgeCumulativeIn(B, client.id('b'));
    expect(broker.stats().backlog).toBe(3);
    await end(B, 'COMMITTED');
    expect(broker.stats().backlog).toBe(1);
  });
});

it('an acknowledgement without a transaction counts, whatever becomes of the transaction (T-14)', async () => {
  const { broker, end } = await worldWith();
  const client = await broker.connect('shared');
  await broker.publish('a', 'b');
  await ackIn(A, client, 'a', 'b');
  await client.ack('a');
  client.take();
  await end(A, 'ABORTED');
  expect(client.take()).toBe('b*');
});

it('a list with a message that is not kept any more is a conflict: it was acknowledged (T-10)', async () => {
  const { broker } = await worldWith();
  const client = await broker.connect('shared');
  await broker.publish('a');
  const gone = { ...client.id('a'), ledgerId: 987, entryId: 6 };
  const message = `[${TOPIC}][s] Transaction:(1,1) try to ack message:987:6 already acked before.`;
  const refused = client.handle.acknowledgeIn(A, [client.id('a'), gone]);
  await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT', message });
  await ackIn(B, client, 'a');
});

it('without transactions at the broker they are refused (T-19)', async () => {
  const broker = new TestBroker();
  const client = await broker.connect('shared');
  await broker.publish('a');
  const refused = client.handle.acknowledgeIn(A, [client.id('a')]);
  const message = "Server don't support transaction ack!";
  await expect(refused).rejects.toMatchObject({ code: 'NOT_ALLOWED', message });
});

it('a broker that comes back knows what is open, and applies what ended meanwhile (T-41)', async () => {
  const { broker, segment } = await worldWith();
  const before = await broker.connect('shared', 'c1');
  await broker.publish('a', 'b', 'c');
  await ackIn(A, before, 'a');
  await ackIn(B, before, 'b');
  broker.broker.restart();
  await segment.end(A, 'ABORTED');
  const after = await broker.connect('shared', 'c2');
  expect(after.take()).toBe('a c');
  await segment.end(B, 'COMMITTED');
  await settlePromises();
  expect(broker.stats().backlog).toBe(2);
});

it('what is kept in a log ends with its transaction too, also where the broker stopped meanwhile (T-43)', async () => {
  const broker = new TestBroker({ transactions: { store: memoryMetadataStore() } });
  const { transactions } = broker.broker;
  const [aborted, committed] = [
    await transactions!.begin({ timeoutMs: 1_000 }),
    await transactions!.begin({ timeoutMs: 1_000 }),
  ];
  const before = await broker.connect('shared', 'c1');
  await broker.publish('a', 'b', 'c');
  await ackIn(transactionKey(aborted), before, 'a');
  await ackIn(transactionKey(committed), before, 'b');
  broker.broker.restart();
  const after = await broker.connect('shared', 'c2');
  expect(after.take()).toBe('c');
  await transactions!.end(aborted, 'abort');
  await transactions!.end(committed, 'commit');
  await settlePromises();
  expect(after.take()).toBe('a*');
  expect(broker.stats().backlog).toBe(2);
});

it('nothing is sent before it is known what is pending, and then all at once (T-20)', async () => {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const logs = memoryPendingAckLogs();
  const owner = { topic: TOPIC, subscription: 's' };
  const pendingAcks: PendingAckStoreProvider = {
    open: async () => {
      await opened;
      return new LoggedPendingAckStore(await logs.open(owner));
    },
  };
  const broker = new TestBroker({ pendingAcks });
  const client = await broker.connect('shared');
  await broker.publish('a', 'b');
  expect(client.take()).toBe('');
  open();
  await settlePromises();
  expect(client.take()).toBe('a b');
});

it('where that cannot be read consumers are disconnected, and the next one tries again (T-20)', async () => {
  let fails = true;
  const logs = memoryPendingAckLogs();
  const pendingAcks: PendingAckStoreProvider = {
    open: async (owner) => {
      if (fails) throw new Error('unreadable');
      return new LoggedPendingAckStore(await logs.open(owner));
    },
  };
  const broker = new TestBroker({ pendingAcks });
  const first = await broker.connect('shared', 'c1');
  expect(first.disconnects).toBe(1);
  await broker.publish('a');
  fails = false;
  const second = await broker.connect('shared', 'c2');
  expect([first.take(), second.take()]).toEqual(['', 'a']);
});

it.each(['deleteSubscription', 'deleteTopic'] as const)('%s leaves no record of what was pending', async (call) => {
  const { broker, segment } = await worldWith();
  const client = await broker.connect('shared');
  await broker.publish('a');
  await ackIn(A, client, 'a');
  expect(await segment.records.opsOf(A)).toHaveLength(1);
  if (call === 'deleteTopic') broker.broker.deleteTopic(TOPIC, { force: true });
  else broker.broker.deleteSubscription(TOPIC, 's', { force: true });
  await settlePromises();
  expect(await segment.records.opsOf(A)).toEqual([]);
});
