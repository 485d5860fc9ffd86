import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import type { EmbeddedPublisher, EmbeddedPublisherOptions } from '../../../src/embedded.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { NEVER, TOPIC, TestTransport } from './transport-kit.js';

const busy = { code: 'PRODUCER_BUSY', retriable: true };
const fenced = { code: 'PRODUCER_FENCED', retriable: false };

const open = (test: TestTransport, options?: EmbeddedPublisherOptions) => test.transport.publisher('orders', options);
const publish = (publisher: EmbeddedPublisher, sequenceId = publisher.nextSequenceId()) =>
  publisher.publish({ payload: null, properties: {} }, sequenceId);

describe('a publisher of the embedded transport', () => {
  it('S-45: has a name of its own, or the one asked for, which nobody else may have', async () => {
    const test = new TestTransport();
    const [one, other] = [await open(test), await open(test)];
    expect(one.producerName).not.toBe(other.producerName);
    const named = await open(test, { producerName: 'n' });
    await expect(open(test, { producerName: 'n' })).rejects.toMatchObject(busy);
    await named.close();
    expect((await open(test, { producerName: 'n' })).producerName).toBe('n');
  });

  it('S-44: goes on behind its last sequence id where the broker deduplicates', async () => {
    const test = new TestTransport({ deduplication: true });
    test.broker.createPartitionedTopic('orders', 2);
    const first = await open(test, { producerName: 'n' });
    for (let n = 0; n < 3; n++) await publish(first);
    await first.close();
    const second = await open(test, { producerName: 'n' });
    expect(second.nextSequenceId()).toBe(3);
  });

  it('S-44: gets a receipt that names no message for a repetition', async () => {
    const test = new TestTransport({ deduplication: true });
    const publisher = await open(test);
    const id = publisher.nextSequenceId();
    expect([await publish(publisher, id), await publish(publisher, id)]).toMatchObject([
      { entryId: 0 },
      { ledgerId: -1, entryId: -1 },
    ]);
  });

  it('is checked: all that is wrong with it at once', async () => {
    const test = new TestTransport();
    const wrong = { producerName: '', accessMode: 'alone', acessMode: 'shared' } as never;
    await expect(open(test, wrong)).rejects.toThrow(ConfigurationError);
    await expect(open(test, wrong)).rejects.toThrow(/acessMode.*"accessMode"[^]*producerName[^]*accessMode/);
  });

  it.each([1, 2])('refuses what is no message, with %s partitions', async (partitions) => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('orders', partitions);
    const publisher = await open(test);
    for (const wrong of [null, { payload: null, properties: {}, key: 5 }]) {
      const refused = publisher.publish(wrong as never, publisher.nextSequenceId());
      await expect(refused).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    }
  });

  it('stores a message as it was at the call, also when it waits for its producer to come again', async () => {
    const test = new TestTransport();
    const publisher = await open(test);
    test.broker.deleteTopic(TOPIC, { force: true });
    const payload = Buffer.from('before');
    const publishing = publisher.publish({ payload, properties: {} }, 0);
    payload.write('after!');
    await publishing;
    const subscription = await test.subscribe();
    const received = await subscription.receive(NEVER);
    expect(Buffer.from(received?.payload ?? []).toString()).toBe('before');
  });

  it('goes on after an unload and a restart', async () => {
    const test = new TestTransport();
    const publisher = await open(test);
    test.broker.unload(TOPIC);
    await publish(publisher);
    test.broker.restart();
    await publish(publisher);
    expect(test.broker.stats(TOPIC).messagesIn).toBe(2);
  });

  it('keeps the order of its calls over a deletion of the topic', async () => {
    const test = new TestTransport();
    const publisher = await open(test);
    test.broker.deleteTopic(TOPIC, { force: true });
    const ids = await Promise.all([publish(publisher), publish(publisher), publish(publisher)]);
    expect(ids.map(({ entryId }) => entryId)).toEqual([0, 1, 2]);
  });
});

describe('G-14: access modes of a publisher', () => {
  it('refuse and fence as the wire client is refused and fenced', async () => {
    const test = new TestTransport();
    const shared = await open(test);
    await expect(open(test, { accessMode: 'exclusive' })).rejects.toMatchObject(fenced);
    const fencing = await open(test, { accessMode: 'exclusive-with-fencing' });
    await expect(publish(shared)).rejects.toMatchObject(busy);
    await fencing.close();
    await publish(shared);
    await shared.close();
    const exclusive = await open(test, { accessMode: 'exclusive' });
    await expect(open(test)).rejects.toMatchObject(busy);
    await open(test, { accessMode: 'exclusive-with-fencing' });
    await expect(publish(exclusive)).rejects.toMatchObject(fenced);
  });

  it('wait for all partitions, one after the other', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('orders', 2);
    const first = await open(test, { accessMode: 'wait-for-exclusive' });
    let isOpen = false;
    const waiting = open(test, { accessMode: 'wait-for-exclusive' }).then((second) => {
      isOpen = true;
      return second;
    });
    await test.clock.advanceBy(1_000_000);
    await publish(first);
    expect(isOpen).toBe(false);
    await first.close();
    await publish(await waiting);
    expect(test.broker.stats(TOPIC).producers).toHaveLength(2);
  });

  it('end their wait when the transport is closed', async () => {
    const test = new TestTransport();
    await open(test);
    const waiting = open(test, { accessMode: 'wait-for-exclusive' });
    await settlePromises();
    await Promise.all([expect(waiting).rejects.toMatchObject({ code: 'ALREADY_CLOSED' }), test.transport.close()]);
  });

  it('keep their place when the topic is deleted', async () => {
    const test = new TestTransport();
    const first = await open(test, { accessMode: 'exclusive' });
    const waiting = open(test, { accessMode: 'wait-for-exclusive' });
    await settlePromises();
    test.broker.deleteTopic(TOPIC, { force: true });
    await settlePromises();
    expect(test.broker.stats(TOPIC)).toMatchObject({ producers: [{ accessMode: 'exclusive' }], waitingProducers: 1 });
    await first.close();
    await publish(await waiting);
  });

  it('hold for partitions that come later: who has them is waited for', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('orders', 1);
    const publisher = await open(test, { accessMode: 'exclusive' });
    test.broker.growPartitions('orders', 2);
    const other = test.broker.producer({ topic: `${TOPIC}-partition-1` });
    await test.clock.advanceBy(60_000);
    expect(publisher.topics()).toHaveLength(1);
    other.close();
    await test.clock.advanceBy(1_000);
    expect(publisher.topics()).toHaveLength(2);
    await publisher.close();
    expect(test.broker.stats(TOPIC).producers).toEqual([]);
  });

  it('hold for partitions that come while those before are waited for', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('orders', 1);
    const publisher = await open(test, { accessMode: 'wait-for-exclusive' });
    test.broker.growPartitions('orders', 2);
    const other = test.broker.producer({ topic: `${TOPIC}-partition-1` });
    await test.clock.advanceBy(60_000);
    test.broker.growPartitions('orders', 3);
    await test.clock.advanceBy(60_000);
    other.close();
    await settlePromises();
    expect(publisher.topics()).toHaveLength(3);
    await publisher.close();
    expect(test.broker.stats(TOPIC)).toMatchObject({ producers: [], waitingProducers: 0 });
  });

  it('take nothing more once the transport was closed while they opened', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('orders', 3);
    const opening = open(test, { accessMode: 'exclusive' });
    await Promise.all([expect(opening).rejects.toMatchObject({ code: 'ALREADY_CLOSED' }), test.transport.close()]);
    expect(test.broker.stats(TOPIC).producers).toEqual([]);
  });
});
