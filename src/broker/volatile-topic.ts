// What is different on a topic that is not persistent: each subscription sends a message at once to who has permits, or it
// is gone. Nothing is stored, counted, delayed or known again, and no message has a place of its own.
import type { ConsumerSink } from './broker-consumer.js';
import type { BrokerStore } from './broker-store.js';

/** Of every message that is not stored, as Pulsar has it. */
export const VOLATILE_PLACE = { ledgerId: 0, entryId: 0 } as const;

/** Nothing is kept beyond the turn in which it is sent, known again, or waited with. */
export const VOLATILE_OPTIONS = {
  maxLedgerEntries: 1,
  deduplication: false,
  activeConsumerFailoverDelayMs: 0,
} as const;

/** @param name full. */
export function isVolatileName(name: string): boolean {
  return name.startsWith('non-persistent://');
}

/** Nothing is stored; a store that wants to know of what passes is told. */
export function volatileStore(store: BrokerStore): BrokerStore {
  return {
    append: ({ topic }, entry) => {
      store.passed?.(topic, entry);
      return undefined;
    },
    acknowledge: () => undefined,
  };
}

/** Tells a client the place that such messages have. */
export function placeless(sink: ConsumerSink): ConsumerSink {
  return {
    deliver: (delivered) => sink.deliver({ ...delivered, ...VOLATILE_PLACE }),
    activeChanged: (active) => sink.activeChanged(active),
    disconnected: () => sink.disconnected(),
  };
}
