// Messages that are cut into chunks on a real broker: large texts, how they are published, and what is left of them.
import type { WireConsumer, WirePublisherOptions } from '../../src/wire.js';
import type { MessageId } from '../../src/index.js';
import { openClient } from './fault-clients.js';
import type { SharedPulsar } from './real-pulsar/integration-test.js';
import { eventually } from './received.js';
import { seeded } from './seeded.js';

export const SIX_MB = 6_000_000;
export const SMALL_CHUNKS: WirePublisherOptions = { batching: false, chunking: true, maxChunkBytes: 2_000 };

const random = seeded(35);

/** Text that no codec makes much smaller, and that is nowhere the same as a chunk before. */
export function largeText(bytes: number): Buffer {
  const piece = Uint8Array.from({ length: 10_007 }, () => 32 + Math.floor(random() * 90));
  return Buffer.alloc(bytes, piece);
}

/** With the key `k` and the property `a`. */
export async function publishChunked(
  { serviceUrl }: SharedPulsar,
  topic: string,
  payload: Buffer,
  options: WirePublisherOptions,
): Promise<MessageId> {
  const publisher = await openClient(serviceUrl).publisher(topic, options);
  const message = { payload, key: 'k', properties: { a: 'b' } };
  return publisher.publish(message, publisher.nextSequenceId());
}

/** On subscription `s`. */
export function subscribeChunked(
  { serviceUrl }: SharedPulsar,
  topic: string,
  options: object = {},
): Promise<WireConsumer> {
  return openClient(serviceUrl).subscribe({ topics: [topic], subscription: 's', ...options });
}

/** Entries in the backlog of subscription `s`, once `holds`. */
export function backlogOf(pulsar: SharedPulsar, topic: string, holds: (entries: number) => boolean): Promise<number> {
  const ask = async (): Promise<number> => (await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog ?? -1;
  return eventually(ask, holds);
}
