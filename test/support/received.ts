// What tests on a real broker receive and compare: messages by their text, figures that are behind by a moment.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReceivedMessage } from '../../src/core/message.js';
import type { Subscription } from '../../src/ports/transport.js';

/** Up to `count` messages; fewer when none came for `quietMs`. */
export async function receive(subscription: Subscription, count: number, quietMs = 10_000): Promise<ReceivedMessage[]> {
  const messages: ReceivedMessage[] = [];
  while (messages.length < count) {
    const message = await subscription.receive(AbortSignal.timeout(quietMs));
    if (message === undefined) break;
    messages.push(message);
  }
  return messages;
}

export const textOf = ({ payload }: Pick<ReceivedMessage, 'payload'>): string => Buffer.from(payload ?? '').toString();
export const texts = (messages: readonly ReceivedMessage[]): readonly string[] => messages.map(textOf);
export const numbered = (count: number): { readonly value: string }[] =>
  Array.from({ length: count }, (_, index) => ({ value: `message ${index}` }));
export const names = (count: number): readonly string[] => numbered(count).map(({ value }) => value);

/** Asks until `holds`; a statistic is behind by a moment. */
export async function eventually<T>(ask: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (let tries = 0; ; tries++) {
    const value = await ask();
    if (holds(value) || tries === 50) return value;
    await sleep(100);
  }
}
