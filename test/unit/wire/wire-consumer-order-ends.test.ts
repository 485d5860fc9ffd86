// When a key whose message failed is no longer guarded on the wire client's own consumers (PIP-493), and what is known of a
// batch of which a part failed.
import { describe, expect, it } from 'vitest';
import { cluster } from './transaction-kit.js';
import { reconnected } from './wire-consumer-kit.js';
import { keyedBatch, start, take, takeAll } from './wire-consumer-order-kit.js';

describe('later messages are handed on again (K-46)', () => {
  it('once the acknowledgement is on its way, before its receipt', async () => {
    const { arrived, subscription, received, told, settled } = await start({}, { ACK: () => undefined });
    await arrived(['a1']);
    const failed = await take(subscription);
    subscription.negativeAcknowledge(failed);
    const acknowledged = subscription.acknowledge([failed.id]).catch(() => undefined);
    await settled();
    await arrived(['a2']);

    expect(await received()).toEqual(['a2']);
    expect(await told()).toHaveLength(1);
    await subscription.close();
    await acknowledged;
  });

  it('not while one of several that failed is not acknowledged', async () => {
    const { arrived, subscription, received } = await start();
    await arrived(['a1', 'a2']);
    const [first, second] = await takeAll(subscription);
    subscription.negativeAcknowledge(first!);
    subscription.negativeAcknowledge(second!);
    await subscription.acknowledge([first!.id]);
    await arrived(['a3']);

    expect(await received()).toEqual([]);
    await subscription.acknowledge([second!.id]);
    await arrived(['a3']);
    expect(await received()).toEqual(['a3']);
  });

  it('in a transaction once that is committed, not before, and not when it is aborted', async () => {
    const { arrived, subscription, received, client } = await start({}, cluster());
    await arrived(['a1']);
    const failed = await take(subscription);
    subscription.negativeAcknowledge(failed);
    const [aborted, committed] = [await client.newTransaction(), await client.newTransaction()];
    await subscription.acknowledge([failed.id], { transaction: aborted });
    await arrived(['a2']);
    const beforeTheEnd = await received();
    await aborted.abort();
    await arrived(['a3']);
    const afterTheAbort = await received();
    await subscription.acknowledge([failed.id], { transaction: committed });
    await committed.commit();
    await arrived(['a2', 'a3', 'a4']);

    expect([beforeTheEnd, afterTheAbort]).toEqual([[], []]);
    expect(await received()).toEqual(['a2', 'a3', 'a4']);
  });

  it('in a transaction that is committed, also where nothing went back', async () => {
    const { arrived, subscription, received, client } = await start({}, cluster());
    await arrived(['a1']);
    const failed = await take(subscription);
    subscription.negativeAcknowledge(failed);
    const transaction = await client.newTransaction();
    await subscription.acknowledge([failed.id], { transaction });
    await transaction.commit();
    await arrived(['a2']);

    expect(await received()).toEqual(['a2']);
  });

  it('when one that went back comes again: the broker waits no longer', async () => {
    const { arrived, subscription, received } = await start();
    await arrived(['a1', 'a2']);
    subscription.negativeAcknowledge(await take(subscription));
    await arrived(['a2', 'a3']);

    expect(await received()).toEqual(['a2', 'a3']);
  });

  it('over a new connection: everything comes again, in order', async () => {
    const { arrived, subscription, received, server, clock, told } = await start();
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    await told();
    server.peers.at(-1)?.cut();
    await reconnected(server, clock);
    await arrived(['a1', 'a2']);

    expect(await received()).toEqual(['a1', 'a2']);
    expect(await told()).toHaveLength(1);
  });

  it('60 s after the delay of the message, not before', async () => {
    const { arrived, subscription, received, after } = await start();
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    await after(64_999);
    await arrived(['a2']);
    const before = await received();
    await after(1);
    await arrived(['a3']);

    expect(before).toEqual([]);
    expect(await received()).toEqual(['a3']);
  });

  it('not when the retry is asked for, nor when it is received', async () => {
    const { arrived, subscription, received, after } = await start();
    await arrived(['a1']);
    subscription.negativeAcknowledge(await take(subscription));
    await after(5_000);
    await arrived(['a2', 'a1', 'a3']);

    expect(await received()).toEqual(['a1']);
  });
});

describe('a batch that failed in part (K-47)', () => {
  it('what does not come again was acknowledged elsewhere: the rest alone is waited for', async () => {
    const { deliver, arrived, subscription, received, settled } = await start();
    deliver(1, keyedBatch('a', ['x', 'y', 'z']));
    await settled();
    const [x, , z] = await takeAll(subscription);
    subscription.negativeAcknowledge(x!);
    subscription.negativeAcknowledge(z!);
    deliver(1, keyedBatch('a', ['x', 'y', 'z']), { ackSet: [0b110n], redeliveryCount: 1 });
    const again = await received();
    await subscription.acknowledge([z!.id]);
    await arrived(['a2']);

    expect(again).toEqual(['y', 'z']);
    expect(await received()).toEqual(['a2']);
  });

  it('what was acknowledged here is not handed on again, though the broker sends it', async () => {
    const { deliver, subscription, received, after, settled } = await start();
    deliver(1, keyedBatch('a', ['x', 'y']));
    await settled();
    const [x, y] = await takeAll(subscription);
    subscription.negativeAcknowledge(y!);
    await subscription.acknowledge([x!.id]);
    await after(5_000);
    deliver(1, keyedBatch('a', ['x', 'y']), { redeliveryCount: 1 });

    expect(await received()).toEqual(['y']);
  });
});

it('a later message that was acknowledged before an earlier one failed is not taken back: its order is lost (K-54)', async () => {
  const { arrived, subscription, received, told, after, deliverNamed } = await start();
  await arrived(['a1', 'a2', 'a3']);
  const [first, second] = [await take(subscription), await take(subscription)];
  await subscription.acknowledge([second.id]);
  subscription.negativeAcknowledge(first);

  expect(await told()).toEqual([[[1], [3]]]);
  await after(5_000);
  deliverNamed('a1', { redeliveryCount: 1 });
  expect(await received()).toEqual(['a1']);
});
