import { describe, expect, it } from 'vitest';
import type { AccessMode, ProducerHandle } from '../../../src/embedded.js';
import { ConfigurationError } from '../../../src/core/errors.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const busy = expect.objectContaining({ code: 'PRODUCER_BUSY', retriable: true }) as Error;
const fenced = expect.objectContaining({ code: 'PRODUCER_FENCED', retriable: false }) as Error;

const open = ({ broker }: TestBroker, accessMode: AccessMode = 'shared', producerName?: string): ProducerHandle =>
  broker.producer({ topic: TOPIC, accessMode, producerName });
const publish = (producer: ProducerHandle, sequenceId = 0) => producer.publish(message('x'), sequenceId);

describe('S-45: the name of a producer', () => {
  it('is unique among those that live on a topic', () => {
    const test = new TestBroker();
    const first = open(test, 'shared', 'n');
    expect(() => open(test, 'shared', 'n')).toThrow(busy);
    test.broker.producer({ topic: 'other', producerName: 'n' });
    first.close();
    expect(open(test, 'shared', 'n').producerName).toBe('n');
  });

  it('is made by the broker where none is asked for', () => {
    const test = new TestBroker();
    expect(new Set([open(test).producerName, open(test).producerName]).size).toBe(2);
  });

  it('is on what it publishes, with a sequence id that may come twice', async () => {
    const test = new TestBroker();
    const producer = open(test, 'shared', 'n');
    const ids = [await publish(producer), await publish(producer)];
    expect(ids.map(({ entryId }) => entryId)).toEqual([0, 1]);
    expect(producer.lastSequenceId).toBe(-1);
    expect(test.broker.stats('t').producers).toEqual([{ name: 'n', accessMode: 'shared' }]);
  });
});

describe('G-14: exclusive access', () => {
  it('is refused beside shared producers, and refuses others of any kind but the one that fences', () => {
    const test = new TestBroker();
    const shared = open(test);
    expect(() => open(test, 'exclusive')).toThrow(fenced);
    shared.close();
    open(test, 'exclusive');
    expect(() => open(test)).toThrow(busy);
    expect(() => open(test, 'exclusive')).toThrow(fenced);
  });

  it('ends when its owner leaves', () => {
    const test = new TestBroker();
    open(test, 'exclusive').close();
    expect(open(test).isAttached).toBe(true);
  });

  it('holds against what is published without a producer', async () => {
    const test = new TestBroker();
    const owner = open(test, 'exclusive');
    await expect(test.broker.publish(TOPIC, message('x'))).rejects.toEqual(busy);
    owner.close();
    await test.broker.publish(TOPIC, message('x'));
  });

  it('is waited for first come, first served, without an end', async () => {
    const test = new TestBroker();
    const shared = open(test);
    const waiting = [open(test, 'wait-for-exclusive', 'n'), open(test, 'wait-for-exclusive', 'n')];
    const admitted: number[] = [];
    waiting.forEach((producer, index) => void producer.admitted().then(() => admitted.push(index)));
    await test.clock.advanceBy(1_000_000_000);
    expect(admitted).toEqual([]);
    await expect(publish(waiting[0]!)).rejects.toEqual(busy);
    shared.close();
    await settlePromises();
    expect(admitted).toEqual([0]);
    await publish(waiting[0]!);
    waiting[0]!.close();
    await settlePromises();
    expect(admitted).toEqual([0, 1]);
    await publish(waiting[1]!);
  });

  it('is had at once by who waits where nobody is', async () => {
    const waiting = open(new TestBroker(), 'wait-for-exclusive');
    await waiting.admitted();
    expect(waiting.isAttached).toBe(true);
  });

  it('has everyone else refused while somebody is in line, although nobody has it', () => {
    const test = new TestBroker();
    open(test);
    open(test, 'wait-for-exclusive');
    expect(() => open(test)).toThrow(busy);
    expect(() => open(test, 'exclusive')).toThrow(fenced);
  });

  it('passes over who left the line', async () => {
    const test = new TestBroker();
    const owner = open(test, 'exclusive');
    const [gone, next] = [open(test, 'wait-for-exclusive'), open(test, 'wait-for-exclusive')];
    gone.close();
    await expect(gone.admitted()).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    owner.close();
    await next.admitted();
  });

  it('survives an unload and a restart: the owner goes on, and the line keeps its order', async () => {
    const test = new TestBroker();
    const owner = open(test, 'exclusive');
    const [first, second] = [open(test, 'wait-for-exclusive'), open(test, 'wait-for-exclusive')];
    test.broker.unload(TOPIC);
    test.broker.restart();
    await publish(owner);
    expect(() => open(test)).toThrow(busy);
    owner.close();
    await first.admitted();
    expect(second.isAttached).toBe(false);
  });
});

describe('G-14: fencing', () => {
  it('ends the owner and those in line, for good', async () => {
    const test = new TestBroker();
    const owner = open(test, 'exclusive');
    const waiting = open(test, 'wait-for-exclusive');
    const newer = open(test, 'exclusive-with-fencing');
    await expect(publish(owner)).rejects.toEqual(fenced);
    await expect(waiting.admitted()).rejects.toEqual(fenced);
    await publish(newer);
    newer.close();
    await expect(publish(owner)).rejects.toEqual(fenced);
    expect(open(test).isAttached).toBe(true);
  });

  it('cuts shared ones off, which are refused until it has left', async () => {
    const test = new TestBroker();
    let disconnects = 0;
    const shared = test.broker.producer({ topic: TOPIC, producerName: 'n' }, () => (disconnects += 1));
    const newer = open(test, 'exclusive-with-fencing');
    expect(disconnects).toBe(0);
    await settlePromises();
    expect(disconnects).toBe(1);
    await expect(publish(shared)).rejects.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
    expect(() => open(test, 'shared', 'n')).toThrow(busy);
    newer.close();
    expect(open(test, 'shared', 'n').isAttached).toBe(true);
  });

  it('needs nobody to be there', () => {
    const test = new TestBroker();
    open(test, 'exclusive-with-fencing');
    expect(test.broker.stats('t').producers).toMatchObject([{ accessMode: 'exclusive-with-fencing' }]);
  });
});

describe('a producer', () => {
  it('that is closed publishes nothing, and closing it again changes nothing', async () => {
    const test = new TestBroker();
    const producer = open(test, 'shared', 'n');
    producer.close();
    const next = open(test, 'shared', 'n');
    producer.close();
    await expect(publish(producer)).rejects.toMatchObject({ code: 'ALREADY_CLOSED', retriable: false });
    await publish(next);
  });

  it('is of one partition', () => {
    const { broker } = new TestBroker();
    broker.createPartitionedTopic('p', 2);
    expect(() => broker.producer({ topic: 'p' })).toThrow(expect.objectContaining({ code: 'NOT_SUPPORTED' }));
    expect(broker.producer({ topic: 'p-partition-1' }).topic).toBe('persistent://public/default/p-partition-1');
  });

  it('is checked: all that is wrong with it at once', () => {
    const { broker } = new TestBroker();
    const wrong = { topic: 't', producerName: '', accessMode: 'alone' } as never;
    expect(() => broker.producer(wrong)).toThrow(ConfigurationError);
    expect(() => broker.producer(wrong)).toThrow(/producerName[^]*accessMode/);
  });

  it('publishes batches', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const ids = await open(test).publishBatch([message('1'), message('2')], 0);
    await settlePromises();
    expect([ids.map(({ entryId, batchIndex }) => [entryId, batchIndex]), client.take()]).toEqual([
      [
        [0, 0],
        [0, 1],
      ],
      '1 2',
    ]);
  });
});
