// A cluster with transactions, on a scripted server.
import { expect, vi } from 'vitest';
import { days } from '../../../src/core/options.js';
import { decodeEntry } from '../../../src/transports/wire/protocol/frames.js';
import type { Entry } from '../../../src/transports/wire/protocol/frames.js';
import type { CommandBody, CommandName } from '../../../src/transports/wire/protocol/commands.js';
import type { WireConsumerOptions, WireOptions } from '../../../src/wire.js';
import { startClient, startSubscription } from '../../support/scripted-consumer.js';
import { SocketClock } from '../../support/wire-server.js';
import type { Peer, Script, WireServer } from '../../support/wire-server.js';

export const COORDINATORS = 'persistent://pulsar/system/transaction_coordinator_assign';
export const message = (text: string) => ({ payload: Buffer.from(text), properties: {} });
export const NOT_FOUND = { coordinator: 20, status: 21, conflict: 23, transaction: 24 } as const;

/** A cluster with two coordinators. What a test says of a command comes first. */
export function cluster(more: Script = {}): Script {
  const answer =
    <N extends 'ADD_PARTITION_TO_TXN_RESPONSE' | 'ADD_SUBSCRIPTION_TO_TXN_RESPONSE' | 'END_TXN_RESPONSE'>(name: N) =>
    ({ requestId }: { readonly requestId: number }, peer: Peer): void =>
      peer.send(name, { requestId } as CommandBody<N>);
  return {
    PARTITIONED_METADATA: ({ requestId, topic }, peer) => {
      const partitions = topic === COORDINATORS ? 2 : 0;
      peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions, response: 0 });
    },
    TC_CLIENT_CONNECT_REQUEST: ({ requestId }, peer) => peer.send('TC_CLIENT_CONNECT_RESPONSE', { requestId }),
    NEW_TXN: ({ requestId, tcId = 0 }, peer) =>
      peer.send('NEW_TXN_RESPONSE', { requestId, txnidMostBits: BigInt(tcId), txnidLeastBits: 7n }),
    ADD_PARTITION_TO_TXN: answer('ADD_PARTITION_TO_TXN_RESPONSE'),
    ADD_SUBSCRIPTION_TO_TXN: answer('ADD_SUBSCRIPTION_TO_TXN_RESPONSE'),
    END_TXN: answer('END_TXN_RESPONSE'),
    ...more,
  };
}

export const start = (script: Script = {}, options: Partial<WireOptions> = {}) => startClient(cluster(script), options);
export const subscribed = (options: Partial<WireConsumerOptions>, script: Script = {}) =>
  startSubscription(options, cluster(script));
export const all = <N extends CommandName>(server: WireServer, name: N): CommandBody<N>[] =>
  server.received.filter((command) => command.name === name).map(({ body }) => body as CommandBody<N>);
/** The order in which the commands of these names came. */
export const order = (server: WireServer, names: readonly CommandName[]) =>
  server.received.map(({ name }) => name).filter((name) => names.includes(name));
export const count = (server: WireServer, name: CommandName) => all(server, name).length;
export const entries = (server: WireServer) => server.sections.map((one) => (decodeEntry(one) as Entry).metadata);
/** Virtual time passes in steps, and real turns for the sockets. */
export const passes = (clock: SocketClock, condition: () => boolean) =>
  vi.waitFor(
    async () => {
      await clock.advanceBy(100);
      expect(condition()).toBe(true);
    },
    { timeout: 15_000, interval: 2 },
  );
export const inVirtualTime = () => ({ clock: new SocketClock(), keepAliveMs: days(1) });
