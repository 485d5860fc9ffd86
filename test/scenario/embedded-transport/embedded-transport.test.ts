import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { NEVER, TOPIC, TestTransport, drain, next, nextOrNone, text } from './transport-kit.js';

const LINES = 'persistent://public/default/lines';

describe('receive', () => {
  it('gives messages in order, whole', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    const key = new Uint8Array([1, 2]);
    await test.publish(['1'], { key, properties: { a: 'b' }, eventTimeMs: 5, orderingKey: key });
    expect(await next(subscription)).toMatchObject({
      id: { ledgerId: 1, entryId: 0, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC },
      payload: new TextEncoder().encode('1'),
      key,
      orderingKey: key,
      eventTimeMs: 5,
      publishTimeMs: test.clock.now(),
      redeliveryCount: 0,
      connection: 1,
    });
  });

  it('waits for a message', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    const received = subscription.receive(NEVER);
    await test.publish(['1']);
    expect(text(await received)).toBe('1');
  });

  it('keeps a null payload apart from an empty one', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish([''], { payload: null });
    await test.publish(['']);
    expect((await drain(subscription)).map(({ payload }) => payload)).toEqual([null, new Uint8Array()]);
  });

  it('ends with undefined when its signal aborts, and the next call gets the message', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    const abort = new AbortController();
    const received = subscription.receive(abort.signal);
    abort.abort();
    expect(await received).toBeUndefined();
    await test.publish(['1']);
    expect(text(await next(subscription))).toBe('1');
  });

  it('refuses a second call while one waits', async () => {
    const subscription = await new TestTransport().subscribe();
    const first = subscription.receive(NEVER);
    await expect(subscription.receive(NEVER)).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    await subscription.close();
    await first;
  });

  it('gives bytes of its own each time', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['abc']);
    const first = await next(subscription);
    first.payload?.fill(0);
    await subscription.redeliver([first.id]);
    expect(text(await next(subscription))).toBe('abc*');
  });

  it('gives the messages of a producer batch one by one', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    const batch = ['a', 'b'].map((letter) => ({ payload: new TextEncoder().encode(letter), properties: {} }));
    await test.broker.publishBatch(TOPIC, batch);
    const received = await drain(subscription);
    expect(received.map((message) => [text(message), message.id.batchIndex, message.id.batchSize])).toEqual([
      ['a', 0, 2],
      ['b', 1, 2],
    ]);
  });
});

describe('prefetch and permits', () => {
  it('lets no more than `prefetch` messages lie in the client', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 4 });
    await test.publish(['1', '2', '3', '4', '5', '6', '7', '8']);
    expect(test.stats().unacked).toBe(4);
    for (let i = 0; i < 3; i++) await next(subscription);
    await settlePromises();
    // Three are with handlers: at most four besides.
    expect(test.stats().unacked - 3).toBeLessThanOrEqual(4);
    expect((await drain(subscription)).length).toBe(5);
  });

  it('asks for nothing before receive is called when it is 0', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 0 });
    await test.publish(['1', '2']);
    expect(test.stats().unacked).toBe(0);
    expect(text(await next(subscription))).toBe('1');
    expect(test.stats().unacked).toBe(1);
    expect((await drain(subscription)).map(text)).toEqual(['2']);
  });

  it('gets past a batch when it is 0', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 0 });
    const batch = ['a', 'b', 'c'].map((letter) => ({ payload: new TextEncoder().encode(letter), properties: {} }));
    await test.broker.publishBatch(TOPIC, batch);
    await test.publish(['d']);
    expect((await drain(subscription)).map(text)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('divides it among topics, at least one each', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ topics: [TOPIC, LINES], prefetch: 4 });
    await test.publish(['1', '2', '3', '4']);
    await test.publish(['a', 'b', 'c', 'd'], {}, LINES);
    expect([test.stats().unacked, test.stats(LINES).unacked]).toEqual([2, 2]);
    expect((await drain(subscription)).length).toBe(8);
  });

  it('leaves work to an idle process', async () => {
    const test = new TestTransport();
    await test.subscribe({ prefetch: 1, consumerName: 'slow' });
    const idle = await test.subscribe({ prefetch: 1, consumerName: 'idle' });
    await test.publish(['1', '2', '3']);
    expect((await drain(idle)).length).toBe(2);
  });

  it('stops granting while paused: what was granted still arrives', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 2 });
    subscription.pause();
    await test.publish(['1', '2', '3']);
    expect((await drain(subscription)).map(text)).toEqual(['1', '2']);
    subscription.resume();
    expect((await drain(subscription)).map(text)).toEqual(['3']);
  });

  it('grants a waiting receive its message on resume when prefetch is 0', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 0 });
    subscription.pause();
    await test.publish(['1']);
    const received = subscription.receive(NEVER);
    await settlePromises();
    expect(test.stats().unacked).toBe(0);
    subscription.resume();
    expect(text(await received)).toBe('1');
  });
});

describe('acknowledge', () => {
  it('takes the message out of the backlog', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1', '2']);
    await subscription.acknowledge([(await next(subscription)).id]);
    expect(test.stats().backlog).toBe(1);
  });

  it('G-04: fails for a list with one foreign topic before anything is acknowledged', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1']);
    const { id } = await next(subscription);
    const acknowledged = subscription.acknowledge([id, { ...id, topic: LINES }]);
    await expect(acknowledged).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
    expect(test.stats().backlog).toBe(1);
  });

  it('takes an id without a topic where there is only one', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1']);
    await subscription.acknowledge([{ ...(await next(subscription)).id, topic: '' }]);
    expect(test.stats().backlog).toBe(0);
  });

  it('refuses an id with a number that is none', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1']);
    const acknowledged = subscription.acknowledge([{ ...(await next(subscription)).id, entryId: Number.NaN }]);
    await expect(acknowledged).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
  });

  it('is cumulative on Exclusive only', async () => {
    const test = new TestTransport();
    const exclusive = await test.subscribe({ type: 'exclusive' });
    await test.publish(['1', '2', '3']);
    const [, second] = await drain(exclusive);
    await exclusive.acknowledgeCumulative(second!.id);
    expect(test.stats().backlog).toBe(1);
    const shared = await test.subscribe({ topics: [LINES] });
    const refused = shared.acknowledgeCumulative({ ...second!.id, topic: LINES });
    await expect(refused).rejects.toMatchObject({ code: 'NOT_SUPPORTED', retriable: false });
  });
});

describe('redeliver', () => {
  it('brings a message back, counted', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1', '2']);
    const [first] = await drain(subscription);
    await subscription.redeliver([first!.id]);
    expect((await drain(subscription)).map(text)).toEqual(['1*']);
  });

  it('N-31, G-12: on Exclusive drops what lies in the client and sends everything again, with its permits', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ type: 'exclusive', prefetch: 3 });
    await test.publish(['1', '2', '3', '4', '5']);
    const first = await next(subscription);
    await subscription.redeliver([first.id]);
    expect((await drain(subscription)).map(text)).toEqual(['1', '2', '3', '4', '5']);
  });

  it('N-33: drops batch siblings that lie in the client, since the entry comes again whole', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    const batch = ['a', 'b'].map((letter) => ({ payload: new TextEncoder().encode(letter), properties: {} }));
    await test.broker.publishBatch(TOPIC, batch);
    const first = await next(subscription);
    await subscription.redeliver([first.id]);
    expect((await drain(subscription)).map(text)).toEqual(['a*', 'b*']);
  });

  it('of nothing does nothing, on Exclusive too', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ type: 'exclusive' });
    await test.publish(['1']);
    await next(subscription);
    await subscription.redeliver([]);
    expect(await nextOrNone(subscription)).toBeUndefined();
  });
});

describe('subscribe', () => {
  it('to a partitioned topic reads all partitions', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('p', 3);
    const subscription = await test.subscribe({ topics: ['p'] });
    await test.publish(['1', '2', '3', '4'], {}, 'persistent://public/default/p');
    const received = await drain(subscription);
    expect(received.map(({ id }) => id.partition).toSorted()).toEqual([0, 0, 1, 2]);
  });

  it('to several topics takes all or none', async () => {
    const test = new TestTransport();
    await test.subscribe({ topics: [LINES], type: 'exclusive' });
    await expect(test.subscribe({ topics: [TOPIC, LINES], type: 'exclusive' })).rejects.toMatchObject({
      code: 'CONSUMER_BUSY',
      retriable: true,
    });
    expect(test.stats().consumers).toEqual([]);
  });

  it('names every wrong field at once', async () => {
    const wrong = { topics: [], subscription: '', type: 'queue' as never, prefetch: -1 };
    const subscribed = new TestTransport().subscribe(wrong);
    await expect(subscribed).rejects.toThrow(/topics[^]*subscription[^]*type[^]*prefetch/);
  });

  it('names a field that there is not', async () => {
    const subscribed = new TestTransport().subscribe({ prefech: 5 } as object);
    await expect(subscribed).rejects.toThrow('unknown option "prefech", did you mean "prefetch"?');
  });
});

describe('embedded()', () => {
  it('refuses an unknown option', () => {
    expect(() => embedded({ brokers: 1 } as never)).toThrow(ConfigurationError);
  });

  it('refuses a clock that is not the one of its broker', () => {
    const broker = new EmbeddedBroker({ clock: new FakeClock() });
    expect(() => embedded({ broker, clock: new FakeClock() })).toThrow('leave it out');
  });

  it('has a broker of its own on the system clock', async () => {
    const transport = embedded();
    const publisher = await transport.publisher('t');
    const { topic } = await publisher.publish({ payload: null, properties: {} }, publisher.nextSequenceId());
    expect([topic, transport.broker.topics()]).toEqual(['persistent://public/default/t', [topic]]);
  });

  it('says what it can do', () => {
    expect([...embedded().capabilities].toSorted()).toEqual([
      'ack-receipts',
      'cumulative-ack',
      'delayed-delivery',
      'flow-pause',
      'ordered-negative-ack',
      'pattern-subscriptions',
      'redelivery-count',
      'transactions',
    ]);
  });
});
