// Acknowledgements of parts of producer batches in transactions, through the broker: what its consumers get, and what counts as
// unacknowledged meanwhile (T-15 to T-19).
import { describe, expect, it } from 'vitest';
import type { SubscriptionType } from '../../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { TestBroker, TestClient } from '../broker-kit.js';
import { A, B } from './pending-ack-kit.js';
import { ackIn, worldWith } from './transactional-acks-kit.js';

const SHARED_TYPES: readonly SubscriptionType[] = ['shared', 'key-shared'];
const SINGLE_TYPES: readonly SubscriptionType[] = ['exclusive', 'failover'];

describe.each(SHARED_TYPES)('on %s', (type) => {
  it('a batch is sent without the messages that are pending, and comes again as a whole (T-15, T-17)', async () => {
    const { broker, end } = await worldWith();
    const first = await broker.connect(type, 'c1');
    await broker.batch('a@k', 'b@k', 'c@k');
    await ackIn(A, first, 'a@k');
    await ackIn(B, first, 'b@k');
    const second = await broker.connect(type, 'c2');
    await first.close();
    expect(second.take()).toBe('c@k');
    await end(A, 'COMMITTED');
    await end(B, 'ABORTED');
    expect(second.take()).toBe('b@k* c@k*');
  });

  it('a message of a batch lowers what is unacknowledged at once, too (T-19)', async () => {
    const { broker } = await worldWith({ maxUnackedPerConsumer: 2 });
    const client = await broker.connect(type);
    await broker.batch('a@k', 'b@k');
    await broker.publish('c@k');
    expect(client.take()).toBe('a@k b@k');
    await ackIn(A, client, 'a@k');
    expect(client.take()).toBe('c@k');
  });

  it('a message of a batch lowers it once: its commit does not do so again (T-16, T-19)', async () => {
    const { broker, end } = await worldWith({ maxUnackedPerConsumer: 2 });
    const client = await broker.connect(type);
    await broker.batch('a@k', 'b@k', 'c@k');
    await broker.publish('d@k');
    client.take();
    await ackIn(A, client, 'a@k');
    await end(A, 'COMMITTED');
    await broker.publish('e@k');
    expect(client.take()).toBe('');
    await ackIn(B, client, 'b@k');
    expect(client.take()).toBe('d@k');
  });

  it('a batch that comes again as a whole counts once as unacknowledged (T-17, T-19)', async () => {
    const { broker, end } = await worldWith({ maxUnackedPerConsumer: 4 });
    const client = await broker.connect(type);
    await broker.batch('a@k', 'b@k', 'c@k');
    await broker.publish('d@k', 'e@k');
    expect(client.take()).toBe('a@k b@k c@k d@k');
    await ackIn(A, client, 'a@k');
    await end(A, 'ABORTED');
    // Blocked until half of it is acknowledged (S-12): what was held of the batch does not count any more.
    expect(client.take()).toBe('a@k* b@k* c@k*');
    await client.ack('d@k', 'a@k');
    expect(client.take()).toBe('e@k');
  });
});

it('on Key_Shared a batch whose messages are all pending does not keep its key with the consumer it was sent to (K-09, T-19)', async () => {
  const { broker } = await worldWith();
  await broker.connect('key-shared', 'c1');
  const second = await broker.connect('key-shared', 'c2');
  await broker.batch('a@A', 'b@A');
  expect(second.take()).toBe('a@A b@A');
  const third = await broker.connect('key-shared', 'c3');
  await broker.publish('c@A');
  await ackIn(A, second, 'a@A');
  expect([third.take(), broker.stats().drainingHashes]).toEqual(['', 1]);
  await ackIn(B, second, 'b@A');
  expect([third.take(), broker.stats().drainingHashes]).toEqual(['c@A', 0]);
});

describe.each(SINGLE_TYPES)('on %s', (type) => {
  const connect = async (broker: TestBroker, name = 'c1'): Promise<TestClient> => {
    const client = await broker.connect(type, name);
    await broker.clock.advanceBy(1_000);
    return client;
  };

  it('of a batch each message is taken once from what is unacknowledged: not again by its commit (T-16, T-19)', async () => {
    const { broker, end } = await worldWith();
    const client = await connect(broker);
    await broker.batch('a', 'b', 'c');
    await ackIn(A, client, 'a');
    expect(broker.stats().unacked).toBe(2);
    await end(A, 'COMMITTED');
    expect(broker.stats().unacked).toBe(2);
    await client.ack('b', 'c');
    expect(broker.stats().unacked).toBe(0);
  });

  it('of a batch, what was pending when all was asked for comes when that is aborted, and not when it is committed (T-15, T-17)', async () => {
    const { broker, end } = await worldWith();
    const client = await connect(broker);
    await broker.batch('a', 'b', 'c');
    await ackIn(A, client, 'a');
    await ackIn(B, client, 'b');
    client.take();
    client.handle.redeliverAll();
    await settlePromises();
    expect(client.take()).toBe('c');
    await end(A, 'ABORTED');
    expect(client.take()).toBe('a c');
    await end(B, 'COMMITTED');
    expect(client.take()).toBe('');
  });

  it('the same of what was acknowledged up to a message of it (T-17)', async () => {
    const { broker, end } = await worldWith();
    const client = await connect(broker);
    await broker.batch('a', 'b', 'c');
    await client.handle.acknowledgeCumulativeIn(A, client.id('b'));
    client.take();
    client.handle.redeliverAll();
    await settlePromises();
    expect(client.take()).toBe('c');
    await end(A, 'ABORTED');
    expect(client.take()).toBe('a b c');
  });
});
