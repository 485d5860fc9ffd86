import { describe, expect, it } from 'vitest';
import type { BrokerStore } from '../../../src/broker/broker-store.js';
import type { ProducerHandle } from '../../../src/embedded.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { hours } from '../../../src/core/options.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const place = ({ ledgerId, entryId }: MessageId): string => `${ledgerId}:${entryId}`;
const NOWHERE = '-1:-1';

const deduplicating = (store?: BrokerStore): TestBroker => new TestBroker({ deduplication: true, store });
const open = ({ broker }: TestBroker, producerName = 'n'): ProducerHandle =>
  broker.producer({ topic: TOPIC, producerName });
const publish = async (producer: ProducerHandle, sequenceId: number): Promise<string> =>
  place(await producer.publish(message(`${sequenceId}`), sequenceId));

describe('S-44: deduplication', () => {
  it('is off unless asked for: a repeated sequence id is stored twice (S-45)', async () => {
    const test = new TestBroker();
    const producer = open(test);
    expect([await publish(producer, 0), await publish(producer, 0)]).toEqual(['1:0', '1:1']);
  });

  it('answers a repetition with -1:-1 and stores nothing', async () => {
    const test = deduplicating();
    const client = await test.connect('shared');
    const producer = open(test);
    expect([await publish(producer, 0), await publish(producer, 1)]).toEqual(['1:0', '1:1']);
    expect([await publish(producer, 0), await publish(producer, 1)]).toEqual([NOWHERE, NOWHERE]);
    expect([client.take(), test.broker.stats('t').messagesIn]).toEqual(['0 1', 2]);
  });

  it('goes by the highest id, so gaps are fine and what is below it is a repetition', async () => {
    const producer = open(deduplicating());
    expect([await publish(producer, 7), await publish(producer, 3), await publish(producer, 8)]).toEqual([
      '1:0',
      NOWHERE,
      '1:1',
    ]);
  });

  it('is by producer name and topic', async () => {
    const test = deduplicating();
    await publish(open(test, 'a'), 5);
    expect(await publish(open(test, 'b'), 5)).toBe('1:1');
    const elsewhere = test.broker.producer({ topic: 'other', producerName: 'a' });
    expect(place(await elsewhere.publish(message('x'), 5))).toBe('2:0');
  });

  it('tells a producer of a known name its last sequence id', async () => {
    const test = deduplicating();
    const first = open(test);
    expect(first.lastSequenceId).toBe(-1);
    await publish(first, 4);
    first.close();
    const second = open(test);
    expect([second.lastSequenceId, await publish(second, 4), await publish(second, 5)]).toEqual([4, NOWHERE, '1:1']);
  });

  it('compares the lowest id of a batch and records the highest: an overlap by one drops all of it', async () => {
    const test = deduplicating();
    const producer = open(test);
    const batch = async (sequenceId: number): Promise<string[]> =>
      (await producer.publishBatch([message('x'), message('y')], sequenceId)).map(place);
    expect(await batch(0)).toEqual(['1:0', '1:0']);
    expect(await batch(1)).toEqual([NOWHERE, NOWHERE]);
    expect(await batch(2)).toEqual(['1:1', '1:1']);
    expect(await publish(producer, 3)).toBe(NOWHERE);
  });

  it('survives an unload and a restart', async () => {
    const test = deduplicating();
    const producer = open(test);
    await publish(producer, 0);
    test.broker.unload(TOPIC);
    expect(await publish(producer, 0)).toBe(NOWHERE);
    test.broker.restart();
    expect([await publish(producer, 0), open(test, 'other').lastSequenceId]).toEqual([NOWHERE, -1]);
  });

  it('forgets a name 6 hours after its last producer left, not while it is there', async () => {
    const test = deduplicating();
    const first = open(test);
    await publish(first, 4);
    await test.clock.advanceBy(hours(100));
    expect(await publish(first, 4)).toBe(NOWHERE);
    first.close();
    await test.clock.advanceBy(hours(6) - 1);
    const second = open(test);
    expect(second.lastSequenceId).toBe(4);
    second.close();
    await test.clock.advanceBy(hours(6));
    expect(open(test).lastSequenceId).toBe(-1);
  });

  it('forgets a name 6 hours after a newer producer shut it out', async () => {
    const test = deduplicating();
    await publish(open(test), 4);
    const newer = test.broker.producer({ topic: TOPIC, producerName: 'newer', accessMode: 'exclusive-with-fencing' });
    newer.close();
    expect(open(test).lastSequenceId).toBe(4);
    test.broker.producer({ topic: TOPIC, producerName: 'newer', accessMode: 'exclusive-with-fencing' }).close();
    await test.clock.advanceBy(hours(6));
    expect(open(test).lastSequenceId).toBe(-1);
  });

  it('forgets a name that publishes without a connection 6 hours after its last message', async () => {
    const test = deduplicating();
    const once = async (): Promise<string> =>
      place(await test.broker.publish('t', message('x'), { producerName: 'n', sequenceId: 4 }));
    expect(await once()).not.toBe(NOWHERE);
    await test.clock.advanceBy(hours(6) - 1);
    expect(await once()).toBe(NOWHERE);
    await test.clock.advanceBy(hours(6) - 1);
    expect(await once()).toBe(NOWHERE);
    await test.clock.advanceBy(hours(6));
    expect(await once()).not.toBe(NOWHERE);
  });

  it('takes what is published without a producer, each once', async () => {
    const test = deduplicating();
    await test.publish('1', '2');
    await test.batch('3', '4');
    await test.publish('5');
    expect(test.broker.stats('t').messagesIn).toBe(5);
  });
});

describe('S-44: deduplication on a store that takes its time', () => {
  function slow() {
    const appends: { resolve: () => void; reject: (error: Error) => void }[] = [];
    const store: BrokerStore = {
      append: () => new Promise((resolve, reject) => appends.push({ resolve, reject })),
      acknowledge: () => undefined,
    };
    const test = deduplicating(store);
    return { appends, producer: open(test), test };
  }

  it('cannot tell before the store has answered, and says so: the call may succeed later', async () => {
    const { appends, producer } = slow();
    const first = publish(producer, 0);
    await expect(publish(producer, 0)).rejects.toMatchObject({ code: 'BROKER_ERROR', retriable: true });
    appends[0]?.resolve();
    expect([await first, await publish(producer, 0)]).toEqual(['1:0', NOWHERE]);
  });

  it('takes a message again that the store refused', async () => {
    const { appends, producer, test } = slow();
    const first = publish(producer, 0);
    appends[0]?.reject(new Error('disk full'));
    await expect(first).rejects.toThrow('disk full');
    const again = publish(producer, 0);
    appends[1]?.resolve();
    await settlePromises();
    expect([await again, test.broker.stats('t').messagesIn]).toEqual(['1:1', 1]);
  });
});
