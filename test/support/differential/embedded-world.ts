// A differential program on the embedded broker, in virtual time: after each step as much of it passes as the slowest thing
// that may follow needs, so what a step leads to is all there before the next one.
import type { EncodedMessage } from 'pulsework';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { FakeClock } from 'pulsework/testing';
import type { DifferentialWorld } from './differential-world.js';

/** More than a change of the active Failover consumer takes (S-03: 1 s), and a client that connects again. */
const STEP_MS = 2_500;

/** @param topic full name. */
export async function embeddedWorld(topic: string): Promise<DifferentialWorld> {
  const clock = new FakeClock();
  const broker = new EmbeddedBroker({ clock });
  const transport = embedded({ broker });
  const publisher = await transport.publisher(topic);
  return {
    transport,
    publish: (message: EncodedMessage) => publisher.publish(message, publisher.nextSequenceId()),
    publishBatch: (messages) => broker.publishBatch(topic, messages),
    unload: async () => broker.unload(topic),
    // It removes at once.
    trim: async () => undefined,
    figures: async () => {
      const { entries, messagesIn, subscriptions } = broker.stats(topic);
      const isEmptied = entries === 0 && messagesIn > 0;
      return new Map([...subscriptions].map(([name, figures]) => [name, { ...figures, isEmptied }]));
    },
    pause: (ms) => clock.advanceBy(ms),
    settle: async (isThere) => {
      do await clock.advanceBy(STEP_MS);
      while (!(await isThere()));
    },
    comes: async (promise) => {
      const none: unique symbol = Symbol('nothing');
      await clock.advanceBy(STEP_MS);
      const first = await Promise.race([promise, Promise.resolve(none)]);
      return first === none ? undefined : first;
    },
    close: () => transport.close(),
  };
}
