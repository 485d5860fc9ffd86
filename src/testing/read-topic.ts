// Everything an embedded broker's topic holds, for looking at what a test has left behind.
import type { EmbeddedBroker } from '../broker/embedded-broker.js';
import type { ReceivedMessage } from '../core/message.js';
import { embedded } from '../transports/embedded/embedded-transport.js';
import type { FakeClock } from './fake-clock.js';

/**
 * In order; nothing is taken away.
 * @param subscription made for this reading: a new name each time.
 */
export async function readTopic(
  broker: EmbeddedBroker,
  clock: FakeClock,
  topic: string,
  subscription: string,
): Promise<ReceivedMessage[]> {
  const transport = embedded({ broker });
  const reader = await transport.subscribe({
    topics: [broker.fullName(topic)],
    subscription,
    type: 'exclusive',
    initialPosition: 'earliest',
    prefetch: 10_000,
    consumerName: 'reader',
  });
  const messages: ReceivedMessage[] = [];
  const end = new AbortController();
  const reading = (async () => {
    for (;;) {
      const message = await reader.receive(end.signal);
      if (message === undefined) return;
      messages.push(message);
    }
  })();
  await clock.advanceBy(0);
  end.abort();
  await reading;
  await transport.close();
  return messages;
}
