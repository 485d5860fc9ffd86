import { describe, expect, it } from 'vitest';
import type { TransportError } from '../../../src/core/errors.js';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { NEVER, TOPIC, TestTransport, drain, next, text } from './transport-kit.js';

const LINES = 'persistent://public/default/lines';

describe('state and seek', () => {
  it('reports connected at once', async () => {
    const subscription = await new TestTransport().subscribe();
    const states: SubscriptionState[] = [];
    subscription.onState((state) => states.push(state));
    expect(states).toEqual([{ topic: 'persistent://public/default/orders', connection: 1, state: 'connected' }]);
  });

  it('reports who is active on Failover', async () => {
    const test = new TestTransport();
    test.broker.createPartitionedTopic('p', 1);
    const states: string[] = [];
    const open = async (consumerName: string): Promise<void> => {
      const subscription = await test.subscribe({ topics: ['p'], type: 'failover', consumerName });
      subscription.onState(({ state }) => states.push(`${consumerName} ${state}`));
    };
    await open('b');
    await test.clock.advanceBy(1_000);
    await open('a');
    await test.clock.advanceBy(1_000);
    expect(states).toEqual(['b connected', 'b active', 'a connected', 'b standby', 'a active']);
  });

  it('S-28: a seek reconnects with a new generation and starts over there', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ prefetch: 2 });
    const states: string[] = [];
    subscription.onState(({ connection, state }) => states.push(`${state} ${connection}`));
    await test.publish(['1', '2', '3']);
    const first = await next(subscription);
    await subscription.acknowledge([first.id]);
    await subscription.seek('earliest');
    const again = await drain(subscription);
    expect([states, again.map(text), again[0]?.connection]).toEqual([
      ['connected 1', 'lost 1', 'connected 2'],
      ['1', '2', '3'],
      2,
    ]);
  });

  it("S-28: another process's seek disconnects this one too, which connects again", async () => {
    const test = new TestTransport();
    const here = await test.subscribe({ consumerName: 'here' });
    const there = await test.subscribe({ consumerName: 'there' });
    const states: string[] = [];
    here.onState(({ connection, state }) => states.push(`${state} ${connection}`));
    await there.seek('latest');
    await settlePromises();
    expect(states).toEqual(['connected 1', 'lost 1', 'connected 2']);
  });

  it('G-03: seeks the topic that the id names', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe({ topics: [TOPIC, LINES] });
    await test.publish(['1']);
    await test.publish(['a'], {}, LINES);
    const [first, second] = await drain(subscription);
    await subscription.acknowledge([first!.id, second!.id]);
    await subscription.seek(second!.id);
    expect((await drain(subscription)).map(text)).toEqual(['a']);
  });

  it.each([undefined, null, 'now', new Date(Number.NaN), {}])('refuses to seek to %s', async (to) => {
    const subscription = await new TestTransport().subscribe();
    await expect(subscription.seek(to as never)).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
  });
});

describe('close', () => {
  it('gives unsettled messages back, uncounted, and never unsubscribes', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1', '2']);
    await next(subscription);
    await subscription.close();
    expect((await drain(await test.subscribe())).map(text)).toEqual(['1', '2']);
  });

  it('ends a waiting receive and every later one with undefined', async () => {
    const subscription = await new TestTransport().subscribe();
    const waiting = subscription.receive(NEVER);
    await subscription.close();
    await subscription.close();
    expect([await waiting, await subscription.receive(NEVER)]).toEqual([undefined, undefined]);
  });

  it('refuses what comes later, each call by name of the code', async () => {
    const test = new TestTransport();
    const subscription = await test.subscribe();
    await test.publish(['1']);
    const { id } = await next(subscription);
    await subscription.close();
    const calls = [
      subscription.acknowledge([id]),
      subscription.acknowledge([]),
      subscription.acknowledgeCumulative(id),
      subscription.redeliver([id]),
      subscription.seek('earliest'),
    ];
    const codes = (await Promise.allSettled(calls)).map((call) =>
      call.status === 'rejected' ? (call.reason as TransportError).code : 'none',
    );
    expect(codes).toEqual(calls.map(() => 'ALREADY_CLOSED'));
  });

  it('of the transport closes its subscriptions and publishers', async () => {
    const test = new TestTransport();
    await test.subscribe();
    const publisher = await test.transport.publisher('orders');
    await test.transport.close();
    await test.transport.close();
    expect(test.stats().consumers).toEqual([]);
    await expect(publisher.publish({ payload: null, properties: {} }, 0)).rejects.toMatchObject({
      code: 'ALREADY_CLOSED',
    });
    await expect(test.subscribe()).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });
});
