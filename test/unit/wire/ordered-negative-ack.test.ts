// Negative acknowledgements that keep the order of a key (PIP-493), against a scripted broker: what is sent, when, and
// what happens without.
import { describe, expect, it } from 'vitest';
import type { OrderedNegativeAckMode, SubscriptionSpec } from '../../../src/core/subscription-spec.js';
import { encodeCommand } from '../../../src/transports/wire/protocol/frames.js';
import type { WireOptions } from '../../../src/wire.js';
import { wire } from '../../../src/wire.js';
import {
  ScriptedTopic,
  TOPIC,
  batchSection,
  never,
  receiveMany,
  section,
  startClient,
  textOf,
} from '../../support/scripted-consumer.js';
import { connectedWith } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

type Wanted = Partial<Omit<SubscriptionSpec, 'pattern'>>;

const keepsOrder = connectedWith({ supportsKeyOrderedNegativeAck: true });
const SPEC: Omit<SubscriptionSpec, 'pattern'> = {
  topics: [TOPIC],
  subscription: 's',
  type: 'key-shared',
  initialPosition: 'earliest',
  prefetch: 10,
  consumerName: 'c',
  orderedNegativeAck: 'best-effort',
};

async function start(spec: Wanted = {}, script: Script = { CONNECT: keepsOrder }, options: Partial<WireOptions> = {}) {
  const started = await startClient(script, { experimentalOrderedNegativeAck: true, ...options });
  const subscription = await started.client.openSubscription({ ...SPEC, ...spec });
  const { consumerId } = await started.server.command('SUBSCRIBE');
  return { ...started, ...new ScriptedTopic(started.server, consumerId).face(), subscription, script };
}

const idOf = (entryId: number) => ({ ledgerId: 1, entryId });

describe('in the protocol', () => {
  it('the command is 82, with the consumer, what failed and what is returned (K-21)', () => {
    const frame = encodeCommand('NEGATIVE_ACK', {
      consumerId: 7,
      negativeAcked: [{ ledgerId: 3, entryId: 4, batchIndex: 2, ackSet: [0b101n] }],
      returned: [{ ledgerId: 3, entryId: 5 }],
    });

    const bytes = [
      '0000001b00000017',
      '0852',
      '920512',
      '0807',
      '1208' + '0803' + '1004' + '2002' + '2805',
      '1a04' + '0803' + '1005',
    ];
    expect(frame.toString('hex')).toBe(bytes.join(''));
  });

  it('the feature is the tenth flag of both sides (K-21)', () => {
    const featureFlags = { supportsKeyOrderedNegativeAck: true };

    expect(encodeCommand('CONNECTED', { serverVersion: 'x', featureFlags }).toString('hex')).toMatch(/22025001$/);
    expect(encodeCommand('CONNECT', { clientVersion: 'x', featureFlags }).toString('hex')).toMatch(/52025001$/);
  });

  it('brokers hear of the feature only with the option', async () => {
    const flags = async (options: Partial<WireOptions>) => (await start({}, {}, options)).server.command('CONNECT');

    expect((await flags({})).featureFlags?.supportsKeyOrderedNegativeAck).toBe(true);
    expect((await flags({ experimentalOrderedNegativeAck: false })).featureFlags).toEqual({
      ...{ supportsAuthRefresh: true, supportsBrokerEntryMetadata: true, supportsTopicWatchers: true },
    });
  });
});

describe('the option', () => {
  const serviceUrl = 'pulsar://localhost:1';

  it('makes the capability, which is not there without it', () => {
    expect(wire({ serviceUrl, experimentalOrderedNegativeAck: true }).capabilities).toContain('ordered-negative-ack');
    expect(wire({ serviceUrl }).capabilities).not.toContain('ordered-negative-ack');
  });

  it('is true or false', () => {
    const experimentalOrderedNegativeAck = 'yes' as never;
    expect(() => wire({ serviceUrl, experimentalOrderedNegativeAck })).toThrow(
      /"experimentalOrderedNegativeAck" must be/,
    );
  });

  it('is what a subscription lacks that requires the order and is opened without it', async () => {
    const { client } = await startClient({ CONNECT: keepsOrder });

    await expect(client.openSubscription({ ...SPEC, orderedNegativeAck: 'required' })).rejects.toMatchObject({
      ...{ code: 'NOT_SUPPORTED', retriable: false },
      message: expect.stringContaining('needs the option "experimentalOrderedNegativeAck"') as unknown,
    });
  });
});

describe('what may be asked for', () => {
  it('to require the order needs Key_Shared', async () => {
    const { client } = await startClient();

    await expect(client.openSubscription({ ...SPEC, type: 'shared', orderedNegativeAck: 'required' })).rejects.toThrow(
      /"orderedNegativeAck" of "required" needs the type "key-shared"/,
    );
  });
});

describe('a negative acknowledgement in order', () => {
  it('names what failed and what is returned, behind what was acknowledged before (K-42)', async () => {
    const { deliver, subscription, server, consumerId } = await start();
    for (const entryId of [0, 1, 2]) deliver(entryId, section('x'));
    const [first, second, third] = (await receiveMany(subscription, 3)).map(({ id }) => id);

    const acknowledged = subscription.acknowledge([first!]);
    subscription.negativeAcknowledgeOrdered([second!], [third!]);
    await acknowledged;

    const command = await server.command('NEGATIVE_ACK');
    expect(command).toEqual({ consumerId, negativeAcked: [idOf(1)], returned: [idOf(2)] });
    expect(server.received.map(({ name }) => name).filter((name) => name.includes('ACK'))).toEqual([
      'ACK',
      'NEGATIVE_ACK',
    ]);
  });

  it('names messages of a batch with their place and what of it is not acknowledged (K-21)', async () => {
    const { deliver, subscription, server } = await start();
    deliver(0, batchSection(['a', 'b', 'c']));
    const [a, b] = (await receiveMany(subscription, 3)).map(({ id }) => id);

    await subscription.acknowledge([a!]);
    subscription.negativeAcknowledgeOrdered([b!], []);

    const { negativeAcked } = await server.command('NEGATIVE_ACK');
    expect(negativeAcked).toEqual([{ ...idOf(0), batchIndex: 1, ackSet: [0b110n] }]);
  });

  it('forgets nothing of a batch: when it comes again, acknowledged messages are not handed on (K-47)', async () => {
    const { deliver, subscription } = await start();
    deliver(0, batchSection(['a', 'b', 'c']));
    const [a, b] = (await receiveMany(subscription, 3)).map(({ id }) => id);
    await subscription.acknowledge([a!]);
    subscription.negativeAcknowledgeOrdered([b!], []);

    await subscription.redeliver([b!]);
    deliver(0, batchSection(['a', 'b', 'c']), { redeliveryCount: 1 });

    expect((await receiveMany(subscription, 2)).map(textOf)).toEqual(['b', 'c']);
  });

  it('of what is returned nothing is left here, and its permits come back once (K-45)', async () => {
    const { deliver, subscription, granted, settled, all } = await start({ prefetch: 4 });
    deliver(0, batchSection(['a', 'b', 'c', 'd']));
    const message = await subscription.receive(never);
    await settled();
    const grantedBefore = granted();

    subscription.negativeAcknowledgeOrdered([], [message!.id]);
    deliver(1, section('next'));

    expect(textOf(await subscription.receive(never))).toBe('next');
    await settled();
    expect([grantedBefore, granted()]).toEqual([4, 8]);
    expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toEqual([]);
  });

  it('has at most 1,000 ids in a command, and all that failed before the first that is returned', async () => {
    const { subscription, all, server } = await start();
    const ids = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at) => ({
        ...{ ...idOf(from + at), partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC },
      }));

    subscription.negativeAcknowledgeOrdered(ids(0, 1_500), ids(1_500, 2_100));
    await server.command('NEGATIVE_ACK', 3);

    const entries = (list: readonly { readonly entryId: number }[] = []) => list.map(({ entryId }) => entryId);
    const commands = all('NEGATIVE_ACK').map((body) => [entries(body.negativeAcked), entries(body.returned)]);
    const range = (from: number, to: number) => entries(ids(from, to));
    expect(commands).toEqual([
      [range(0, 1_000), []],
      [range(1_000, 1_500), range(1_500, 2_000)],
      [[], range(2_000, 2_100)],
    ]);
  });

  it('goes to the consumer of each topic', async () => {
    const other = `${TOPIC}-2`;
    const { subscription, server, all } = await start({ topics: [TOPIC, other] });
    const rest = { partition: -1, batchIndex: -1, batchSize: 0 };

    subscription.negativeAcknowledgeOrdered(
      [{ ...idOf(1), ...rest, topic: TOPIC }],
      [
        { ...idOf(2), ...rest, topic: other },
        { ...idOf(3), ...rest, topic: TOPIC },
      ],
    );
    await server.command('NEGATIVE_ACK', 2);

    const consumerOf = new Map(all('SUBSCRIBE').map(({ topic, consumerId }) => [topic, consumerId]));
    expect(all('NEGATIVE_ACK')).toEqual([
      { consumerId: consumerOf.get(TOPIC), negativeAcked: [idOf(1)], returned: [idOf(3)] },
      { consumerId: consumerOf.get(other), returned: [idOf(2)] },
    ]);
  });

  it('asks nothing over a connection that is gone, and nothing later of it over the next one', async () => {
    const { deliver, subscription, server, all, settled } = await start();
    deliver(0, section('x'));
    const message = await subscription.receive(never);
    const lost = new Promise<void>((resolve) => subscription.onState(({ state }) => state === 'lost' && resolve()));
    server.peers.at(-1)?.cut();
    await lost;

    subscription.negativeAcknowledgeOrdered([message!.id], [message!.id]);
    await server.command('SUBSCRIBE', 2);
    await settled();

    expect([all('NEGATIVE_ACK'), all('REDELIVER_UNACKNOWLEDGED_MESSAGES')]).toEqual([[], []]);
  });

  it('asks nothing while a seek is under way: all of it comes again', async () => {
    const { deliver, subscription, all, settled, server, script, say } = await start();
    deliver(0, section('x'));
    const message = await subscription.receive(never);
    script.SEEK = () => undefined;
    const seek = subscription.seek('earliest');
    const { requestId } = await server.command('SEEK');

    subscription.negativeAcknowledgeOrdered([message!.id], []);
    say('SUCCESS', { requestId });
    await seek;
    await settled();

    expect(all('NEGATIVE_ACK')).toEqual([]);
  });

  it('is refused once the subscription is closed', async () => {
    const { subscription } = await start();
    await subscription.close();

    expect(() => subscription.negativeAcknowledgeOrdered([], [])).toThrow(
      expect.objectContaining({ code: 'ALREADY_CLOSED' }),
    );
  });
});

describe('the command is sent only where it is known and asked for (K-40)', () => {
  const withoutFeature = connectedWith({ supportsTopicWatchers: true });
  it.each<[string, Wanted, Partial<WireOptions>, NonNullable<Script['CONNECT']>]>([
    ['a broker without the feature', {}, {}, withoutFeature],
    ['a client without the option', {}, { experimentalOrderedNegativeAck: false }, keepsOrder],
    ['the mode disabled', { orderedNegativeAck: 'disabled' }, {}, keepsOrder],
    ['no mode', { orderedNegativeAck: undefined }, {}, keepsOrder],
    ['Shared', { type: 'shared' }, {}, keepsOrder],
  ])(
    'with %s what failed stays, and what is returned is asked back in the plain way',
    async (_, spec, options, CONNECT) => {
      const { deliver, subscription, all, settled, server } = await start(spec, { CONNECT }, options);
      for (const entryId of [0, 1]) deliver(entryId, section('x'));
      const [failed, returned] = (await receiveMany(subscription, 2)).map(({ id }) => id);

      subscription.negativeAcknowledgeOrdered([failed!], [returned!]);
      subscription.negativeAcknowledgeOrdered([failed!], []);
      await settled();

      const { messageIds } = await server.command('REDELIVER_UNACKNOWLEDGED_MESSAGES');
      expect(messageIds).toEqual([idOf(1)]);
      expect(all('REDELIVER_UNACKNOWLEDGED_MESSAGES')).toHaveLength(1);
      expect(all('NEGATIVE_ACK')).toEqual([]);
      expect(subscription.states()).toMatchObject([{ state: 'connected', orderedNegativeAck: false }]);
    },
  );

  it.each<OrderedNegativeAckMode>(['best-effort', 'required'])(
    '%s: a state says that the broker has it',
    async (mode) => {
      const { subscription } = await start({ orderedNegativeAck: mode });

      expect(subscription.states()).toMatchObject([{ state: 'connected', orderedNegativeAck: true }]);
    },
  );
});
