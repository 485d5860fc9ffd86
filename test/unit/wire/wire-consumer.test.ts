// The wire client's own consumer, in virtual time: its ack timeout, options and states.
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../../src/core/options.js';
import { exponentialBackoff, fixedBackoff } from '../../../src/wire.js';
import { TOPIC, batchSection, receiveMany, section, startClient } from '../../support/scripted-consumer.js';
import { everything, reconnected, start } from './wire-consumer-kit.js';

describe('the ack timeout', () => {
  const ackTimeoutMs = 10_000;

  it('asks for a message back that was handed on and is not settled (A-05)', async () => {
    const { next, after } = await start({ ackTimeoutMs });
    await next(1);

    expect(await after(9_999)).toEqual([]);
    expect(await after(1)).toEqual([[1]]);
    expect(await after(minutes(5))).toEqual([[1]]);
  });

  it('does not run for a message that waits to be received (A-03)', async () => {
    const { deliver, subscription, after, settled } = await start({ ackTimeoutMs });
    deliver(1, section('x'));
    await settled();
    const before = await after(minutes(5));
    await receiveMany(subscription, 1);

    expect(before).toEqual([]);
    expect(await after(10_000)).toEqual([[1]]);
  });

  it('ends with the acknowledgement (A-07), also a cumulative one', async () => {
    const { next, subscription, after } = await start({ ackTimeoutMs, type: 'exclusive' });
    const [first, second, third] = [await next(1), await next(2), await next(3)];
    await subscription.acknowledgeCumulative(second.id);
    await subscription.acknowledge([third.id]);

    expect(first.id.entryId).toBe(1);
    expect(await after(minutes(5))).toEqual([]);
  });

  it('ends with the negative acknowledgement: its delay counts (N-25)', async () => {
    const { next, subscription, after } = await start({ ackTimeoutMs, negativeAckRedeliveryDelayMs: 20_000 });
    subscription.negativeAcknowledge(await next(1));
    subscription.negativeAcknowledgeId((await next(2)).id);

    expect(await after(19_999)).toEqual([]);
    expect(await after(minutes(5))).toEqual([[1, 2]]);
  });

  it('has the backoff added (A-06)', async () => {
    const { next, after } = await start({ ackTimeoutMs, ackTimeoutBackoff: exponentialBackoff() });
    await next(1, 2);

    expect(await after(13_999)).toEqual([]);
    expect(await after(1)).toEqual([[1]]);
  });

  it('of one message of a batch brings the whole entry, and what waits for a sibling is needless', async () => {
    const { deliver, subscription, after } = await start({ ackTimeoutMs });
    deliver(1, batchSection(['a', 'b']));
    const [a] = await receiveMany(subscription, 2);
    subscription.negativeAcknowledge(a!);

    expect(await after(10_000)).toEqual([[1]]);
    expect(await after(minutes(5))).toEqual([[1]]);
  });

  it('on Exclusive brings everything again, once (N-31)', async () => {
    const { next, after } = await start({ ackTimeoutMs, type: 'exclusive' });
    await next(1);
    await after(5_000);
    await next(2);

    expect(await after(minutes(5))).toEqual(everything);
  });

  it('ends when the connection is lost', async () => {
    const { next, after, server, clock } = await start({ ackTimeoutMs });
    await next(1);
    server.peers.at(-1)?.cut();
    await reconnected(server, clock);

    expect(await after(minutes(5))).toEqual([]);
  });

  it('is none without the option, or with 0 (A-01)', async () => {
    for (const options of [{}, { ackTimeoutMs: 0 }]) {
      const { next, after } = await start(options);
      await next(1);

      expect(await after(minutes(60))).toEqual([]);
    }
  });
});

describe('options', () => {
  it('are all checked before any broker is asked', async () => {
    const { client: opened, server } = await startClient();
    const options = {
      topics: [],
      subscription: 's',
      negativeAckRedeliveryDelayMs: -1,
      negativeAckBackof: 5,
      ackTimeoutMs: 999,
      ackTimeoutBackoff: 3,
    };

    await expect(opened.subscribe(options as never)).rejects.toMatchObject({
      problems: [
        'subscribe: unknown option "negativeAckBackof", did you mean "negativeAckBackoff"?',
        'subscribe: "topics" must be a list of at least one topic name, got an array of 0',
        'subscribe: "negativeAckRedeliveryDelayMs" must be a duration of 0 ms or more (in milliseconds), got -1',
        'subscribe: "ackTimeoutMs" must be a duration of at least 1000 ms (in milliseconds), got 999',
        'subscribe: "ackTimeoutBackoff" must be a function, got 3',
      ],
    });
    expect(server.received).toEqual([]);
  });

  it('of an ack timeout backoff without a timeout are refused', async () => {
    const { client: opened } = await startClient();
    const options = { topics: [TOPIC], subscription: 's', ackTimeoutBackoff: fixedBackoff(seconds(1)) };

    await expect(opened.subscribe(options)).rejects.toThrow(/"ackTimeoutBackoff" needs "ackTimeoutMs"/);
  });

  it('of delays are refused by the subscription without delays, which the runtime uses', async () => {
    const { client: opened } = await startClient();
    const options = { topics: [TOPIC], subscription: 's', ackTimeoutMs: 5_000 };

    await expect(opened.openSubscription(options)).rejects.toThrow(/unknown option "ackTimeoutMs"/);
    const subscription = await opened.openSubscription({ topics: [TOPIC], subscription: 's' });
    expect(subscription).not.toHaveProperty('negativeAcknowledge');
  });
});

describe('states', () => {
  it('are told to the one who asks, as they are now and as they change', async () => {
    const { subscription, say, consumerId, settled } = await start({ type: 'failover' });
    say('ACTIVE_CONSUMER_CHANGE', { consumerId, isActive: true });
    await settled();
    const states: string[] = [];
    subscription.onState(({ state }) => states.push(state));
    say('ACTIVE_CONSUMER_CHANGE', { consumerId, isActive: false });
    await settled();

    expect(states).toEqual(['active', 'standby']);
    expect(() => subscription.onState(5 as never)).toThrow(/onState needs a function, got 5/);
  });
});
