// What a subscription does where the order of keys is required and a broker cannot keep it (K-50), on two scripted
// brokers with a partition each, in virtual time.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import type { CommandName } from '../../../src/transports/wire/protocol/commands.js';
import { startClient } from '../../support/scripted-consumer.js';
import { SocketClock, WireServer, connectedWith } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const TOPIC = 'persistent://public/default/t';
const [FIRST, SECOND] = [`${TOPIC}-partition-0`, `${TOPIC}-partition-1`];
const SPEC = {
  topics: [TOPIC],
  subscription: 's',
  type: 'key-shared',
  prefetch: 10,
} as const;
const keepsOrder = connectedWith({ supportsKeyOrderedNegativeAck: true });
const cannot = connectedWith({ supportsTopicWatchers: true });
/** Virtual time runs far ahead of the sockets: no answer may be late for it. */
const PATIENT = { keepAliveMs: 10_000_000, requestTimeoutMs: 10_000_000, connectTimeoutMs: 10_000_000 };

const servers: WireServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** The first partition is on the first broker, which keeps the order, the second one on the other. */
async function start({ second = keepsOrder, partitions = 2 } = {}) {
  const clock = new SocketClock();
  const other: Script = { CONNECT: second };
  const otherServer = await WireServer.start(other);
  servers.push(otherServer);
  const cluster = { partitions };
  const script: Script = {
    CONNECT: keepsOrder,
    PARTITIONED_METADATA: ({ requestId }, peer) =>
      peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: cluster.partitions, response: 0 }),
    LOOKUP: ({ requestId, topic }, peer) => {
      const url = topic === SECOND ? otherServer.url : started.server.url;
      peer.send('LOOKUP_RESPONSE', { requestId, response: 1, brokerServiceUrl: url });
    },
  };
  const started = await startClient(script, { clock, experimentalOrderedNegativeAck: true, ...PATIENT });
  return {
    ...started,
    ...{ otherServer, other, cluster, clock },
    /** Lets time pass until `holds`. */
    passing: (holds: () => void, stepMs = 50) =>
      vi.waitFor(
        () => {
          void clock.advanceBy(stepMs);
          holds();
        },
        { timeout: 5_000, interval: 5 },
      ),
  };
}

/** Resolves once the server has read what the client sent so far over the newest connection. */
async function allRead(server: WireServer): Promise<void> {
  const pongs = named(server, 'PONG');
  server.peers.at(-1)?.send('PING', {});
  await server.command('PONG', pongs + 1);
}
const named = (server: WireServer, name: CommandName): number =>
  server.received.filter((command) => command.name === name).length;
const stateOf = (states: readonly SubscriptionState[], topic: string) => states.find((state) => state.topic === topic);

describe('required', () => {
  it('is refused for all partitions when the broker of one cannot, by the name of that one', async () => {
    const { client, server, otherServer } = await start({ second: cannot });

    await expect(client.openSubscription({ ...SPEC, orderedNegativeAck: 'required' })).rejects.toMatchObject({
      ...{ code: 'NOT_SUPPORTED', retriable: false },
      message: `${SECOND}: "orderedNegativeAck" is "required", and its broker does not have it`,
    });

    expect([named(server, 'SUBSCRIBE'), named(server, 'CLOSE_CONSUMER'), named(server, 'FLOW')]).toEqual([1, 1, 0]);
    expect(named(otherServer, 'SUBSCRIBE')).toBe(0);
  });

  it('suspends a partition that comes to a broker that cannot, alone, until one can', async () => {
    const { client, server, otherServer, other, passing, lines } = await start();
    const subscription = await client.openSubscription({ ...SPEC, orderedNegativeAck: 'required' });
    const told: string[] = [];
    subscription.onState(({ topic, state }) => void (topic === SECOND && told.push(state)));
    const moved = async (to: NonNullable<Script['CONNECT']>, state: SubscriptionState['state']) => {
      other.CONNECT = to;
      const { connection } = stateOf(subscription.states(), SECOND)!;
      otherServer.peers.at(-1)?.cut();
      await passing(() => {
        const now = stateOf(subscription.states(), SECOND);
        expect(now).toMatchObject({ state });
        expect(now!.connection).toBeGreaterThan(connection);
      });
    };

    await otherServer.command('FLOW');
    await moved(cannot, 'suspended');
    subscription.pause();
    subscription.resume();
    await allRead(otherServer);
    const suspended = subscription.states();
    const grantedWhileSuspended = named(otherServer, 'FLOW');
    await moved(keepsOrder, 'connected');
    await otherServer.command('FLOW', 2);

    expect(stateOf(suspended, SECOND)).toMatchObject({ state: 'suspended', orderedNegativeAck: false });
    expect(stateOf(suspended, FIRST)).toMatchObject({ state: 'connected', orderedNegativeAck: true, connection: 1 });
    expect(grantedWhileSuspended).toBe(1);
    expect(stateOf(subscription.states(), SECOND)).toMatchObject({ state: 'connected', orderedNegativeAck: true });
    expect(told).toEqual(['connected', 'lost', 'suspended', 'lost', 'connected']);
    expect(lines.filter(({ level }) => level === 'error').map(({ text }) => text)).toEqual([
      `subscription "s" takes nothing from ${SECOND}: "orderedNegativeAck" is "required", and its broker does not have it`,
    ]);
    expect(named(server, 'SUBSCRIBE')).toBe(1);
  });

  it('tells of a suspended partition once a minute at most, however often it comes again', async () => {
    const { client, otherServer, other, passing, lines, clock } = await start();
    const subscription = await client.openSubscription({ ...SPEC, orderedNegativeAck: 'required' });
    other.CONNECT = cannot;
    const again = async (): Promise<void> => {
      const { connection } = stateOf(subscription.states(), SECOND)!;
      otherServer.peers.at(-1)?.cut();
      await passing(() => expect(stateOf(subscription.states(), SECOND)!.connection).toBeGreaterThan(connection), 1);
    };
    const errors = () => lines.filter(({ level }) => level === 'error').length;

    for (let round = 0; round < 5; round++) await again();
    const inTheFirstMinute = errors();
    await clock.advanceBy(60_000);
    await again();

    expect([inTheFirstMinute, errors()]).toEqual([1, 2]);
  });

  it('suspends a new partition on a broker that cannot, and reads the others', async () => {
    const { client, cluster, passing, otherServer } = await start({ second: cannot, partitions: 1 });
    const subscription = await client.openSubscription({ ...SPEC, orderedNegativeAck: 'required' });
    cluster.partitions = 2;

    await passing(() => expect(subscription.topics()).toEqual([FIRST, SECOND]), 5_000);

    await allRead(otherServer);
    expect(subscription.states()).toMatchObject([{ state: 'connected' }, { state: 'suspended' }]);
    expect(named(otherServer, 'SUBSCRIBE')).toBe(1);
    expect(named(otherServer, 'FLOW')).toBe(0);
  });
});

describe('best-effort', () => {
  it('goes on everywhere, and says which connections keep the order', async () => {
    const { client, otherServer } = await start({ second: cannot });

    const subscription = await client.openSubscription({ ...SPEC, orderedNegativeAck: 'best-effort' });

    await otherServer.command('FLOW');
    expect(subscription.states()).toMatchObject([
      { topic: FIRST, state: 'connected', orderedNegativeAck: true },
      { topic: SECOND, state: 'connected', orderedNegativeAck: false },
    ]);
  });
});
