// The seam to a broker that keeps the order of a key that failed (PIP-493), over the embedded transport.
import { describe, expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import type { MessageId } from '../../../src/core/message-id.js';
import type { SubscriptionSpec } from '../../../src/core/subscription-spec.js';
import type { EmbeddedSubscription } from '../../../src/transports/embedded/embedded-subscription.js';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestTransport, drain, next, text } from './transport-kit.js';

const ORDERED = { type: 'key-shared', orderedNegativeAck: 'best-effort' } as const;

async function subscribed(test: TestTransport, spec: Partial<SubscriptionSpec> = {}): Promise<EmbeddedSubscription> {
  return (await test.subscribe({ ...ORDERED, ...spec })) as EmbeddedSubscription;
}

async function published(test: TestTransport, ...texts: string[]): Promise<void> {
  for (const one of texts) await test.publish([one], { key: one.slice(0, 1) });
}

async function received(subscription: EmbeddedSubscription): Promise<string> {
  await settlePromises();
  return (await drain(subscription)).map(text).join(' ');
}

function idsOf(messages: readonly ReceivedMessage[], ...texts: string[]): MessageId[] {
  return messages.filter((message) => texts.includes(text(message))).map(({ id }) => id);
}

describe('K-27: what is returned over the transport', () => {
  it('comes again in its place, whether it was handed on or lay in the queue, and its permit is free at once', async () => {
    const test = new TestTransport();
    const subscription = await subscribed(test, { prefetch: 4 });
    await published(test, 'A1', 'A2', 'A3', 'A4', 'B1', 'B2', 'B3', 'B4');
    const [first, second] = [await next(subscription), await next(subscription)];
    // A3 and A4 lie here: their ids are known by what the broker sent.
    const queued = [2, 3].map((entryId) => ({ ...first.id, entryId }));
    subscription.negativeAcknowledgeOrdered([first.id], [second.id, ...queued]);
    expect(await received(subscription)).toBe('B1 B2 B3 B4');
    await subscription.redeliver([first.id]);
    expect(await received(subscription)).toBe('A1*');
    await subscription.acknowledge([first.id]);
    expect(await received(subscription)).toBe('A2 A3 A4');
  });

  it('and with the switch off: what failed is not taken up, and the state says so', async () => {
    const test = new TestTransport({ keySharedNegativeAckOrdering: false });
    const subscription = await subscribed(test);
    await published(test, 'A1', 'A2');
    const all = await drain(subscription);
    subscription.negativeAcknowledgeOrdered(idsOf(all, 'A1'), idsOf(all, 'A2'));
    await published(test, 'A3');
    expect([await received(subscription), test.stats().retryingHashes]).toEqual(['A2 A3', 0]);
  });
});

describe('K-40: who takes part', () => {
  const statesOf = (subscription: EmbeddedSubscription): SubscriptionState[] => {
    const states: SubscriptionState[] = [];
    subscription.onState((state) => states.push(state));
    return states;
  };

  it('the capability is there unless the switch is off', () => {
    const has = (on: boolean): boolean =>
      new TestTransport({ keySharedNegativeAckOrdering: on }).transport.capabilities.has('ordered-negative-ack');
    expect([has(true), has(false)]).toEqual([true, false]);
  });

  it.each<[string, Partial<SubscriptionSpec>, boolean, boolean | undefined]>([
    ['best-effort on Key_Shared', {}, true, true],
    ['required on Key_Shared', { orderedNegativeAck: 'required' }, true, true],
    ['disabled', { orderedNegativeAck: 'disabled' }, true, undefined],
    ['nothing said', { orderedNegativeAck: undefined }, true, undefined],
    ['on Shared', { type: 'shared' }, true, undefined],
    ['with the switch off', {}, false, undefined],
  ])('%s', async (_what, spec, on, kept) => {
    const test = new TestTransport({ keySharedNegativeAckOrdering: on });
    const subscription = await subscribed(test, spec);
    expect(statesOf(subscription).map(({ orderedNegativeAck }) => orderedNegativeAck)).toEqual([kept]);
    await published(test, 'A1');
    subscription.negativeAcknowledgeOrdered([(await next(subscription)).id], []);
    await published(test, 'A2');
    expect(await received(subscription)).toBe(kept === true ? '' : 'A2');
  });

  it('after a reconnect the state says it again', async () => {
    const test = new TestTransport();
    const states = statesOf(await subscribed(test));
    test.broker.unload(TOPIC);
    await settlePromises();
    expect(states.map(({ state, orderedNegativeAck }) => `${state} ${orderedNegativeAck}`)).toEqual([
      'connected true',
      'lost true',
      'connected true',
    ]);
  });
});

describe('K-50: a subscription that requires it', () => {
  it('does not open where the broker does not have it, and nothing was made', async () => {
    const test = new TestTransport({ keySharedNegativeAckOrdering: false });
    await expect(subscribed(test, { orderedNegativeAck: 'required' })).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: `${TOPIC}: "orderedNegativeAck" is "required", and its broker does not have it`,
    });
    expect(test.broker.topics()).toEqual([]);
  });

  it('is for key-shared', async () => {
    const opening = subscribed(new TestTransport(), { type: 'shared', orderedNegativeAck: 'required' });
    await expect(opening).rejects.toThrow('"orderedNegativeAck" of "required" needs the type "key-shared"');
  });
});

describe('the call has no answer', () => {
  it('over a connection that is gone nothing is asked, and all comes again', async () => {
    const test = new TestTransport();
    const subscription = await subscribed(test);
    await published(test, 'A1', 'A2');
    const all = await drain(subscription);
    test.broker.unload(TOPIC);
    subscription.negativeAcknowledgeOrdered(idsOf(all, 'A1'), idsOf(all, 'A2'));
    expect([await received(subscription), test.stats().retryingHashes]).toEqual(['A1 A2', 0]);
  });

  it('on several topics each broker side gets its own; what came from another topic is ignored', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic(TOPIC, 2);
    const subscription = await subscribed(test);
    await test.publish(['A1', 'A2'], { key: 'A' });
    await test.publish(['B1', 'B2'], { key: 'B' });
    const all = await drain(subscription);
    const elsewhere = { ...all[0]!.id, topic: 'persistent://public/default/left' };
    subscription.negativeAcknowledgeOrdered(
      [...idsOf(all, 'A1', 'B1'), elsewhere],
      [...idsOf(all, 'A2', 'B2'), elsewhere],
    );
    expect([await received(subscription), test.stats().retryingPositions]).toEqual(['', 2]);
    await subscription.acknowledge(idsOf(all, 'A1', 'B1'));
    expect((await received(subscription)).split(' ').toSorted()).toEqual(['A2', 'B2']);
  });

  it('it fails only when the subscription is closed, or for what is no id', async () => {
    const subscription = await subscribed(new TestTransport());
    expect(() => subscription.negativeAcknowledgeOrdered(5 as never, [])).toThrow('message ids must be a list');
    expect(() => subscription.negativeAcknowledgeOrdered([], [5 as never])).toThrow('message id must be an object');
    await subscription.close();
    expect(() => subscription.negativeAcknowledgeOrdered([], [])).toThrow('is closed');
  });
});
