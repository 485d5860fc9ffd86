// Negative acknowledgements of the wire client's own consumer, in virtual time: what it asks back, and when.
import { describe, expect, it, vi } from 'vitest';
import { minutes } from '../../../src/core/options.js';
import { exponentialBackoff, fixedBackoff } from '../../../src/wire.js';
import { batchSection, never, receiveMany } from '../../support/scripted-consumer.js';
import { everything, start } from './wire-consumer-kit.js';

describe('the delay of a negative acknowledgement', () => {
  it('follows the default backoff over five: 1, 2, 4, 8, 16 s (N-08)', async () => {
    const { subscription, next, after } = await start({ negativeAckBackoff: exponentialBackoff() });
    for (const [redeliveryCount, waitMs] of [1_000, 2_000, 4_000, 8_000, 16_000].entries()) {
      subscription.negativeAcknowledge(await next(7, redeliveryCount));

      expect(await after(waitMs - 1)).toHaveLength(redeliveryCount);
      expect(await after(1)).toHaveLength(redeliveryCount + 1);
    }
    expect(await after(minutes(60))).toEqual([[7], [7], [7], [7], [7]]);
  });

  it('is 60 s without options (N-10)', async () => {
    const { subscription, next, after } = await start();
    subscription.negativeAcknowledge(await next(1));

    expect(await after(59_999)).toEqual([]);
    expect(await after(1)).toEqual([[1]]);
  });

  it('is the fixed one for an id, also beside a backoff (N-13, N-14)', async () => {
    const backoff = vi.fn(() => 10);
    const { subscription, next, after } = await start({
      negativeAckBackoff: backoff,
      negativeAckRedeliveryDelayMs: 5_000,
    });
    subscription.negativeAcknowledgeId((await next(1)).id);

    expect(await after(4_999)).toEqual([]);
    expect(await after(1)).toEqual([[1]]);
    expect(backoff).not.toHaveBeenCalled();
  });

  it('is the fixed one for a message whose count is not known (N-13)', async () => {
    const { subscription, next, after } = await start({
      negativeAckBackoff: fixedBackoff(10),
      negativeAckRedeliveryDelayMs: 5_000,
    });
    const { id } = await next(1);
    subscription.negativeAcknowledge({ id });

    expect(await after(4_999)).toEqual([]);
    expect(await after(1)).toEqual([[1]]);
  });

  it('of 0 asks at once, also for what waits already, with one request (N-11)', async () => {
    const { subscription, next, after } = await start({
      negativeAckBackoff: fixedBackoff(9_000),
      negativeAckRedeliveryDelayMs: 0,
    });
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    subscription.negativeAcknowledgeId(message.id);

    expect(await after(0)).toEqual([[1]]);
    expect(await after(minutes(1))).toEqual([[1]]);
  });

  it('asks the backoff once per negative acknowledgement, with the count of the broker', async () => {
    const negativeAckBackoff = vi.fn(() => 1_000);
    const { subscription, next } = await start({ negativeAckBackoff });
    const message = await next(1, 6);
    subscription.negativeAcknowledge(message);
    subscription.negativeAcknowledge(message);

    expect(negativeAckBackoff.mock.calls).toEqual([
      [6, expect.any(Function)],
      [6, expect.any(Function)],
    ]);
  });

  it('of a backoff that throws is the fixed one, and the log says so', async () => {
    const { subscription, next, after, lines } = await start({
      negativeAckBackoff: () => {
        throw new Error('bug');
      },
      negativeAckRedeliveryDelayMs: 5_000,
    });
    subscription.negativeAcknowledge(await next(1));

    expect(await after(5_000)).toEqual([[1]]);
    expect(lines).toMatchObject([{ level: 'error', text: 'subscription "s": a backoff failed: bug' }]);
  });

  it('ends for several entries in one request when they are due together (N-21)', async () => {
    const { subscription, next, after } = await start();
    for (const entry of [1, 2, 3]) subscription.negativeAcknowledge(await next(entry));

    expect(await after(60_000)).toEqual([[1, 2, 3]]);
  });

  it('on Exclusive ends with everything sent again, once for all that waits (N-31)', async () => {
    const { subscription, next, after } = await start({ type: 'exclusive', negativeAckBackoff: exponentialBackoff() });
    subscription.negativeAcknowledge(await next(1));
    await after(500);
    subscription.negativeAcknowledge(await next(2));

    expect(await after(500)).toEqual(everything);
    expect(await after(minutes(5))).toEqual(everything);
  });

  it('is refused for a message of another topic', async () => {
    const { subscription, next } = await start();
    const message = await next(1);
    const foreign = { ...message, id: { ...message.id, topic: 'persistent://public/default/other' } };

    expect(() => subscription.negativeAcknowledge(foreign)).toThrow(/has no topic "persistent:.*other" that this/);
    expect(() => subscription.negativeAcknowledgeId(foreign.id)).toThrow(/has no topic/);
  });
});

describe('what cancels a negative acknowledgement', () => {
  it('the acknowledgement of the message (N-27)', async () => {
    const { subscription, next, after } = await start();
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    await subscription.acknowledge([message.id]);

    expect(await after(minutes(5))).toEqual([]);
  });

  it('not the acknowledgement of its batch siblings (N-27)', async () => {
    const { subscription, deliver, after } = await start();
    deliver(1, batchSection(['a', 'b', 'c']));
    const [a, b, c] = await receiveMany(subscription, 3);
    subscription.negativeAcknowledge(b!);
    await subscription.acknowledge([a!.id, c!.id]);

    expect(await after(60_000)).toEqual([[1]]);
  });

  it('of a whole batch, all acknowledgements together (N-27)', async () => {
    const { subscription, deliver, after } = await start();
    deliver(1, batchSection(['a', 'b']));
    const [a, b] = await receiveMany(subscription, 2);
    subscription.negativeAcknowledge(a!);
    subscription.negativeAcknowledge(b!);
    await subscription.acknowledge([a!.id]);
    await subscription.acknowledge([b!.id]);

    expect(await after(minutes(5))).toEqual([]);
  });

  it('a cumulative acknowledgement up to it or beyond (N-28)', async () => {
    const { subscription, next, after } = await start({ type: 'exclusive' });
    const [first, second, third] = [await next(1), await next(2), await next(3)];
    subscription.negativeAcknowledge(first);
    subscription.negativeAcknowledge(second);
    await subscription.acknowledgeCumulative(second.id);
    const cancelled = await after(minutes(5));
    subscription.negativeAcknowledge(third);
    await subscription.acknowledgeCumulative(second.id);

    expect(cancelled).toEqual([]);
    expect(await after(minutes(5))).toEqual(everything);
  });

  it('not an acknowledgement that is refused, because then nothing is acknowledged (G-04)', async () => {
    const { subscription, next, after, all } = await start();
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    const foreign = { ...message.id, topic: 'persistent://public/default/other' };

    await expect(subscription.acknowledge([message.id, foreign])).rejects.toMatchObject({ code: 'MESSAGE_ID_INVALID' });
    await expect(subscription.acknowledgeCumulative(message.id)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(await after(60_000)).toEqual([[1]]);
    expect(all('ACK')).toEqual([]);
  });

  it('asking for the entry at once', async () => {
    const { subscription, next, after } = await start();
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    await subscription.redeliver([message.id]);

    expect(await after(minutes(5))).toEqual([[1]]);
  });

  it('a seek, after which everything comes again', async () => {
    const { subscription, next, after } = await start({}, {});
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    const sought = subscription.seek('earliest');
    for (let turn = 0; turn < 20; turn++) await after(10);
    await sought;

    expect(await after(minutes(5))).toEqual([]);
  });

  it('closing: the broker has everything again, and later ones mean nothing (N-16, N-29)', async () => {
    const { subscription, next, all, clock, server } = await start();
    const message = await next(1);
    subscription.negativeAcknowledge(message);
    await subscription.close();
    subscription.negativeAcknowledge(message);
    subscription.negativeAcknowledgeId(message.id);
    const timers = clock.pendingTimers;
    await clock.advanceBy(minutes(5));
    server.peers.at(-1)?.send('PING', {});
    await server.command('PONG');

    expect(timers).not.toContain(60_000);
    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toEqual([]);
  });

  it('closing the client', async () => {
    const { subscription, next, all, client: opened, clock } = await start();
    subscription.negativeAcknowledge(await next(1));
    await opened.close();

    expect(clock.pendingTimers).toEqual([]);
    await clock.advanceBy(minutes(5));
    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toEqual([]);
    await expect(subscription.receive(never)).resolves.toBeUndefined();
  });
});
