// A consumer of the wire client on a scripted server, in virtual time.
import { expect, vi } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { days } from '../../../src/core/options.js';
import type { WireConsumerOptions } from '../../../src/wire.js';
import { never, section, startSubscription } from '../../support/scripted-consumer.js';
import { SocketClock } from '../../support/wire-server.js';
import type { Script, WireServer } from '../../support/wire-server.js';

/** What a request for everything looks like in `after`: it names no entries. */
export const everything = [[]];

/** Virtual time passes without pings: they would need turns of the event loop that it does not wait for. */
const client = () => ({ clock: new SocketClock(), keepAliveMs: days(1) });

export async function start(options: Partial<WireConsumerOptions> = {}, script: Script = {}) {
  const settings = client();
  const started = await startSubscription(options, script, settings);
  const { deliver, settled, all, subscription } = started;
  return {
    ...started,
    /** Delivers an entry and receives its message. */
    next: async (entryId: number, redeliveryCount = 0): Promise<ReceivedMessage> => {
      deliver(entryId, section(`${entryId}`), { redeliveryCount });
      return (await subscription.receive(never))!;
    },
    /** Lets time pass. Gives the entries of all requests so far, one list each. */
    after: async (ms: number): Promise<(readonly number[])[]> => {
      await settings.clock.advanceBy(ms);
      await settled();
      const requests = all('REDELIVER_UNACKNOWLEDGED_MESSAGES');
      return requests.map(({ messageIds = [] }) => messageIds.map(({ entryId }) => entryId).sort());
    },
    clock: settings.clock,
    /** The consumers' ids at the server, in the order in which they were registered. */
    consumerIds: (): readonly number[] => all('SUBSCRIBE').map(({ consumerId }) => consumerId),
  };
}

/** The client waits a moment before it connects again: virtual time has to pass, and real turns for the socket. */
export async function reconnected(server: WireServer, clock: SocketClock): Promise<void> {
  const registrations = (): number => server.received.filter(({ name }) => name === 'SUBSCRIBE').length;
  await vi.waitFor(
    () => {
      void clock.advanceBy(1);
      expect(registrations()).toBe(2);
    },
    { timeout: PATIENCE_MS, interval: 5 },
  );
}

/** Of a machine that is busy with other things. */
export const PATIENCE_MS = 15_000;
