// What a topic holds, from its first message on, until no more comes.
import type { ReceivedMessage, Transport } from '../../src/index.js';

/** @param wait lets some time pass; when nothing came meanwhile, that was all. Closes the transport. */
export async function readAll(
  transport: Transport,
  topic: string,
  wait: () => Promise<unknown>,
): Promise<readonly ReceivedMessage[]> {
  const subscription = await transport.subscribe({
    topics: [topic],
    subscription: `reader-${topic}`,
    type: 'exclusive',
    initialPosition: 'earliest',
    prefetch: 1_000,
    consumerName: 'reader',
  });
  const messages: ReceivedMessage[] = [];
  const end = new AbortController();
  const reading = (async () => {
    for (let next = await subscription.receive(end.signal); next !== undefined;) {
      messages.push(next);
      next = await subscription.receive(end.signal);
    }
  })();
  for (let before = -1; before !== messages.length;) {
    before = messages.length;
    await wait();
  }
  end.abort();
  await reading;
  await transport.close();
  return messages;
}
