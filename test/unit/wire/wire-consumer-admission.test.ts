// Whether a received message may be handled now (K-51, K-52): `acquireForOrderedProcessing` of the wire client's consumers.
import { describe, expect, it } from 'vitest';
import type { WireConsumerOptions, WireOptions } from '../../../src/wire.js';
import { TOPIC, section, startClient, textOf } from '../../support/scripted-consumer.js';
import type { Script } from '../../support/wire-server.js';
import { reconnected } from './wire-consumer-kit.js';
import { cannotKeepOrder, keepsOrder, keyedBatch, start, take, takeAll } from './wire-consumer-order-kit.js';

const startAdmitting = (options: Partial<WireConsumerOptions> = {}, script: Script = {}) =>
  start({ orderedProcessingAdmission: true, ...options }, script);

const admitted = { outcome: 'admitted' };
const returned = (reason: string) => ({ outcome: 'returned', reason });

describe('acquireForOrderedProcessing (K-51)', () => {
  it('admits the earliest message of each key that is not acknowledged', async () => {
    const { arrived, subscription, told } = await startAdmitting();
    await arrived(['a1', 'b2', 'a3']);
    const [a1, b2, a3] = await takeAll(subscription);

    expect(subscription.acquireForOrderedProcessing(a1!)).toEqual(admitted);
    expect(subscription.acquireForOrderedProcessing(b2!)).toEqual(admitted);
    await subscription.acknowledge([a1!.id]);
    expect(subscription.acquireForOrderedProcessing(a3!)).toEqual(admitted);
    expect(subscription.acquireForOrderedProcessing(a3!)).toEqual(admitted);
    expect(await told()).toEqual([]);
  });

  it('gives back what was received before an earlier one failed, uncounted and once, and admits it behind the retry', async () => {
    const { arrived, subscription, told, askedBack, after, granted } = await startAdmitting();
    await arrived(['a1', 'a2', 'a3']);
    const [a1, a2, a3] = await takeAll(subscription);
    subscription.acquireForOrderedProcessing(a1!);
    subscription.negativeAcknowledge(a1!);
    expect(subscription.acquireForOrderedProcessing(a2!)).toEqual(returned('key-awaiting-retry'));
    expect(subscription.acquireForOrderedProcessing(a2!)).toEqual(returned('key-awaiting-retry'));
    expect(subscription.acquireForOrderedProcessing(a3!)).toEqual(returned('key-awaiting-retry'));
    await after(5_000);
    await arrived(['a1'], { redeliveryCount: 1 });
    const retry = await take(subscription);
    expect(subscription.acquireForOrderedProcessing(retry)).toEqual(admitted);
    await subscription.acknowledge([retry.id]);
    await arrived(['a2']);

    expect(subscription.acquireForOrderedProcessing(await take(subscription))).toEqual(admitted);
    expect(await told()).toEqual([
      [[1], []],
      [[], [2]],
      [[], [3]],
    ]);
    expect(await askedBack()).toEqual([[1]]);
    // One for each of the five that were received, and none again for those that went back.
    expect(granted()).toBe(10 + 5);
  });

  it('waits for the failed message for as long as it takes: a queue of the application knows no time', async () => {
    const { arrived, subscription, after } = await startAdmitting();
    await arrived(['a1', 'a2']);
    const [a1, a2] = await takeAll(subscription);
    subscription.negativeAcknowledge(a1!);
    await after(600_000);

    expect(subscription.acquireForOrderedProcessing(a2!)).toEqual(returned('key-awaiting-retry'));
  });

  it('goes by messages, not by failures: an earlier one that is not acknowledged is waited for', async () => {
    const { arrived, subscription, told } = await startAdmitting();
    await arrived(['a1', 'a2']);
    const [, a2] = await takeAll(subscription);

    expect(subscription.acquireForOrderedProcessing(a2!)).toEqual(returned('earlier-message-unresolved'));
    expect(await told()).toEqual([[[], [2]]]);
  });

  it('within a batch by the place in it, and gives back whole entries, once', async () => {
    const { deliver, settled, arrived, subscription, told } = await startAdmitting();
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [a1, x, y] = await takeAll(subscription);
    subscription.acquireForOrderedProcessing(a1!);
    const before = [x!, y!, x!].map((one) => subscription.acquireForOrderedProcessing(one).outcome);
    await subscription.acknowledge([a1!.id]);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [again, last] = await takeAll(subscription);

    expect(before).toEqual(['returned', 'returned', 'returned']);
    expect(await told()).toEqual([[[], [2]]]);
    expect(subscription.acquireForOrderedProcessing(again!)).toEqual(admitted);
    await subscription.acknowledge([again!.id]);
    expect(subscription.acquireForOrderedProcessing(last!)).toEqual(admitted);
  });

  it('knows of an entry that went back from the queue behind a failure, and gives it back no second time', async () => {
    const { deliver, settled, arrived, subscription, told } = await startAdmitting();
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'y']));
    await settled();
    const [a1, x] = [await take(subscription), await take(subscription)];
    subscription.negativeAcknowledge(a1);

    expect(subscription.acquireForOrderedProcessing(x)).toEqual(returned('key-awaiting-retry'));
    expect(await told()).toEqual([[[1], [2]]]);
  });

  it('what went back is waited for by no ack timeout', async () => {
    const { deliver, settled, arrived, subscription, askedBack, after } = await startAdmitting({ ackTimeoutMs: 5_000 });
    await arrived(['a1']);
    deliver(2, keyedBatch('a', ['x', 'never asked about']));
    await settled();
    const [a1, x] = await takeAll(subscription);
    subscription.acquireForOrderedProcessing(x!);
    await subscription.acknowledge([a1!.id]);
    await after(60_000);

    expect(await askedBack()).toEqual([]);
  });

  it.each<[string, (world: Awaited<ReturnType<typeof startAdmitting>>) => Promise<unknown>]>([
    ['after its ack timeout', ({ after }) => after(2_000)],
    ['when it is asked back', async ({ subscription }) => subscription.redeliver([{ ...ID, batchIndex: -1 }])],
    ['when it fails by id', async ({ subscription }) => subscription.negativeAcknowledgeId(ID)],
  ])('a message that is handled is not resolved %s: later ones go back', async (_, leave) => {
    const world = await startAdmitting({ ackTimeoutMs: 2_000 });
    const { arrived, subscription } = world;
    await arrived(['a1', 'a2']);
    const a1 = await take(subscription);
    subscription.acquireForOrderedProcessing(a1);
    await leave(world);
    const [a2] = await takeAll(subscription);

    expect(subscription.acquireForOrderedProcessing(a2!)).toEqual(returned('key-awaiting-retry'));
    await arrived(['a1'], { redeliveryCount: 1 });
    expect(subscription.acquireForOrderedProcessing(await take(subscription))).toEqual(admitted);
  });

  it('in a queue of the client, too: what goes back from there counts as gone back', async () => {
    const { arrived, subscription } = await startAdmitting();
    await arrived(['a1', 'a2', 'a3']);
    const a1 = await take(subscription);
    subscription.acquireForOrderedProcessing(a1);
    subscription.negativeAcknowledge(a1);
    await subscription.acknowledge([a1.id]);
    await arrived(['a2']);
    const a2 = await take(subscription);

    expect([textOf(a2), subscription.acquireForOrderedProcessing(a2)]).toEqual(['a2', admitted]);
  });
});

const ID = { ledgerId: 1, entryId: 1, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC };

describe('what may be asked for (K-52)', () => {
  const withOption: Partial<WireOptions> = { experimentalOrderedNegativeAck: true };
  it.each<[string, Partial<WireConsumerOptions>, Partial<WireOptions>, RegExp]>([
    ['beside disabled', { orderedNegativeAck: 'disabled' }, withOption, /"orderedNegativeAck" that is not "disabled"$/],
    ['without the option of the client', {}, {}, /not "disabled": see "experimentalOrderedNegativeAck" of the client$/],
    ['on Shared', { type: 'shared' }, withOption, /"orderedProcessingAdmission" needs the type "key-shared"/],
    [
      'by other than true or false',
      { orderedProcessingAdmission: 1 as never },
      withOption,
      /must be true or false|boolean/,
    ],
  ])('admission is refused at opening %s', async (_, options, client, rule) => {
    const started = await startClient({ CONNECT: keepsOrder }, client);
    const asked = { topics: [TOPIC], subscription: 's', type: 'key-shared', orderedProcessingAdmission: true } as const;

    const opening = started.client.subscribe({ ...asked, ...options });
    await expect(opening).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    await expect(opening).rejects.toThrow(rule);
    expect(started.server.received).toEqual([]);
  });

  it.each(['best-effort', 'required', 'disabled'] as const)('%s without it: a call is ILLEGAL_STATE', async (mode) => {
    const { arrived, subscription } = await start({ orderedNegativeAck: mode });
    await arrived(['a1']);
    const message = await take(subscription);

    expect(() => subscription.acquireForOrderedProcessing(message)).toThrow(
      expect.objectContaining({
        code: 'ILLEGAL_STATE',
        message: expect.stringContaining('"orderedProcessingAdmission"') as unknown,
      }),
    );
  });

  it('required beside it fails at opening where a broker cannot', async () => {
    const opening = startAdmitting({ orderedNegativeAck: 'required' }, { CONNECT: cannotKeepOrder });
    await expect(opening).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });

  it('best-effort: over a connection without the feature messages are admitted without a guarantee', async () => {
    const { arrived, subscription, told } = await startAdmitting({}, { CONNECT: cannotKeepOrder });
    await arrived(['a1', 'a2']);
    const answers = (await takeAll(subscription)).map((one) => subscription.acquireForOrderedProcessing(one));

    expect(answers).toEqual(Array(2).fill({ outcome: 'admitted-without-guarantee' }));
    expect(await told()).toEqual([]);
  });

  it('so is a message without a key', async () => {
    const { deliver, settled, subscription } = await startAdmitting();
    deliver(1, section('x'));
    await settled();
    const message = await take(subscription);
    expect(subscription.acquireForOrderedProcessing(message)).toEqual({ outcome: 'admitted-without-guarantee' });
  });

  it('a copy from a connection that was replaced is returned, also the one that was admitted', async () => {
    const { arrived, subscription, server, clock, told } = await startAdmitting();
    await arrived(['a1', 'a2']);
    const [a1, a2] = await takeAll(subscription);
    const before = subscription.acquireForOrderedProcessing(a1!);
    server.peers.at(-1)?.cut();
    await reconnected(server, clock);
    await arrived(['a1']);
    const again = await take(subscription);

    expect(before).toEqual(admitted);
    for (const old of [a1!, a2!]) {
      expect(subscription.acquireForOrderedProcessing(old)).toEqual(returned('superseded-connection'));
    }
    expect(subscription.acquireForOrderedProcessing(again)).toEqual(admitted);
    expect(await told()).toEqual([]);
  });

  it('so is everything once the consumer is closed; a foreign message is refused', async () => {
    const { arrived, subscription } = await startAdmitting();
    await arrived(['a1']);
    const message = await take(subscription);
    const foreign = { ...message, id: { ...message.id, topic: 'persistent://public/default/other' } };
    const refused = expect.objectContaining({ code: 'MESSAGE_ID_INVALID' }) as Error;

    expect(() => subscription.acquireForOrderedProcessing(foreign)).toThrow(refused);
    expect(() => subscription.acquireForOrderedProcessing(undefined as never)).toThrow(refused);
    await subscription.close();
    expect(subscription.acquireForOrderedProcessing(message)).toEqual(returned('superseded-connection'));
  });
});
