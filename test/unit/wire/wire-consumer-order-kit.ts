// A Key_Shared consumer of the wire client on a scripted broker that keeps the order of keys that failed, in virtual time.
import { days } from '../../../src/core/options.js';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { BatchWriter } from '../../../src/transports/wire/protocol/batch.js';
import type { CommandBody } from '../../../src/transports/wire/protocol/commands.js';
import { encodeSend } from '../../../src/transports/wire/protocol/frames.js';
import type { WireConsumer, WireConsumerOptions, WireOptions } from '../../../src/wire.js';
import { never, section, startSubscription, textOf } from '../../support/scripted-consumer.js';
import { SocketClock, connectedWith, sectionOf } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

export const keepsOrder = connectedWith({ supportsKeyOrderedNegativeAck: true });
export const cannotKeepOrder = connectedWith({ supportsTopicWatchers: true });

const DELAY_MS = 5_000;
type Delivery = Partial<CommandBody<'MESSAGE'>>;

/** Messages are named by their key and entry: `a1` has the key `a` and is entry 1. */
export async function start(
  options: Partial<WireConsumerOptions> = {},
  script: Script = {},
  client: Partial<WireOptions> = {},
) {
  const clock = new SocketClock();
  const started = await startSubscription(
    { type: 'key-shared', negativeAckRedeliveryDelayMs: DELAY_MS, ...options },
    { CONNECT: keepsOrder, ...script },
    { clock, keepAliveMs: days(1), experimentalOrderedNegativeAck: true, ...client },
  );
  const { deliver, settled, all, subscription } = started;
  const deliverNamed = (name: string, more: Delivery = {}): void =>
    deliver(entryOf(name), section(name, { partitionKey: name.slice(0, 1) }), more);
  return {
    ...started,
    clock,
    deliverNamed,
    /** All of them lie in the client, and none was received. */
    arrived: async (names: readonly string[], more: Delivery = {}): Promise<void> => {
      for (const name of names) deliverNamed(name, more);
      await settled();
    },
    after: async (ms: number): Promise<void> => {
      await clock.advanceBy(ms);
      await settled();
    },
    /** The entries of each NEGATIVE_ACK so far: what failed, what goes back. */
    told: async (): Promise<readonly (readonly [readonly number[], readonly number[]])[]> => {
      await settled();
      return all('NEGATIVE_ACK').map((body) => [entriesOf(body.negativeAcked), entriesOf(body.returned)] as const);
    },
    /** The entries of each request for redelivery so far. */
    askedBack: async (): Promise<readonly (readonly number[])[]> => {
      await settled();
      return all('REDELIVER_UNACKNOWLEDGED_MESSAGES').map(({ messageIds }) => entriesOf(messageIds));
    },
    /** What can be received now. */
    received: async (): Promise<readonly string[]> => {
      await settled();
      return (await takeAll(subscription)).map(textOf);
    },
  };
}

export async function takeAll(subscription: WireConsumer): Promise<readonly ReceivedMessage[]> {
  const taken: ReceivedMessage[] = [];
  for (;;) {
    const stop = new AbortController();
    const next = subscription.receive(stop.signal);
    // A message that lies in the client is handed on within these turns.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    stop.abort();
    const message = await next;
    if (message === undefined) return taken;
    taken.push(message);
  }
}

export const take = async (subscription: WireConsumer): Promise<ReceivedMessage> =>
  (await subscription.receive(never)) as ReceivedMessage;

/** A batch as producers with batches of one key make it: its key stands with each message. */
export function keyedBatch(key: string, texts: readonly string[]): Buffer {
  return mixedBatch(texts.map((text) => [key, text] as const));
}

export function mixedBatch(messages: readonly (readonly [key: string, text: string])[]): Buffer {
  const batch = new BatchWriter();
  for (const [partitionKey, text] of messages) batch.add({ payloadSize: text.length, partitionKey }, Buffer.from(text));
  const metadata = { producerName: 'p', sequenceId: 0, publishTime: 1, numMessagesInBatch: messages.length };
  return sectionOf(encodeSend({ producerId: 1, sequenceId: 0 }, metadata, Buffer.from(batch.view())));
}

const entryOf = (name: string): number => Number(name.slice(1));
const entriesOf = (ids: readonly { readonly entryId: number }[] = []): readonly number[] =>
  ids.map(({ entryId }) => entryId);
