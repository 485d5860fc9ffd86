// Publishing and taking messages in tests of the adapter for the official client.
import type { EncodedMessage, Publisher, ReceivedMessage, Subscription } from 'pulsework';
import { wire } from 'pulsework/wire';
import type { SharedPulsar } from '../real-pulsar/integration-test.js';
import { receive, textOf } from '../received.js';
import { specOf } from './official-modules.js';

/** How long nothing must come for a test to believe that nothing will. */
const QUIET_MS = 300;
export const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export const message = (text: string, more: Partial<EncodedMessage> = {}): EncodedMessage => ({
  payload: Buffer.from(text),
  properties: {},
  ...more,
});

export async function take(subscription: Subscription, count: number): Promise<ReceivedMessage[]> {
  const taken: ReceivedMessage[] = [];
  const { signal } = new AbortController();
  while (taken.length < count) {
    const next = await subscription.receive(signal);
    if (next === undefined) throw new Error(`the subscription ended after ${taken.length} of ${count}`);
    taken.push(next);
  }
  return taken;
}

export const takeUntilQuiet = (subscription: Subscription): Promise<ReceivedMessage[]> =>
  receive(subscription, Infinity, QUIET_MS);

export async function publishAll(publisher: Publisher, messages: readonly EncodedMessage[]): Promise<void> {
  await Promise.all(messages.map((one) => publisher.publish(one, publisher.nextSequenceId())));
}

export const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

/** What is left on a subscription, seen over the wire: `expected` messages are waited for, and then whether more come. */
export async function leftOn({ serviceUrl }: SharedPulsar, topic: string, expected: number): Promise<string[]> {
  const transport = wire({ serviceUrl });
  const subscription = await transport.subscribe(specOf(topic));
  const left = [...(await receive(subscription, expected)), ...(await takeUntilQuiet(subscription))];
  await transport.close();
  return left.map(textOf);
}
