// Wraps a transport and keeps book of what was delivered and what was settled, to find a delivery settled twice.
import { formatMessageId } from '../../src/index.js';
import type { MessageId, Subscription, Transport } from '../../src/index.js';

export class SettlementLedger {
  readonly #deliveries = new Map<string, number>();
  readonly #settlements = new Map<string, number>();
  /** Acknowledged ids, whole run. */
  readonly acknowledged = new Set<string>();
  readonly violations: string[] = [];

  wrap(inner: Transport): Transport {
    return {
      name: inner.name,
      capabilities: inner.capabilities,
      maxMessageBytes: inner.maxMessageBytes,
      publisher: (topic) => inner.publisher(topic),
      close: () => inner.close(),
      subscribe: async (spec) => this.#wrapSubscription(await inner.subscribe(spec)),
    };
  }

  #wrapSubscription(inner: Subscription): Subscription {
    return {
      receive: async (signal) => {
        const message = await inner.receive(signal);
        if (message !== undefined) add(this.#deliveries, formatMessageId(message.id));
        return message;
      },
      acknowledge: async (ids) => {
        await inner.acknowledge(ids);
        this.#settle(ids, 'acknowledged');
        for (const id of ids) this.acknowledged.add(formatMessageId(id));
      },
      redeliver: async (ids) => {
        await inner.redeliver(ids);
        // A request for a batch entry settles each message of it that was not acknowledged: counted with its own id only.
        this.#settle(
          ids.filter((id) => id.batchSize === 0),
          'asked back',
        );
      },
      acknowledgeCumulative: (id) => inner.acknowledgeCumulative(id),
      pause: () => inner.pause(),
      resume: () => inner.resume(),
      seek: (to) => inner.seek(to),
      onState: (report) => inner.onState(report),
      close: () => inner.close(),
    };
  }

  #settle(ids: readonly MessageId[], how: string): void {
    for (const id of ids.map(formatMessageId)) {
      add(this.#settlements, id);
      const delivered = this.#deliveries.get(id) ?? 0;
      const settled = this.#settlements.get(id) ?? 0;
      if (settled > delivered)
        this.violations.push(`${id} ${how}: settled ${settled} times, delivered ${delivered} times`);
    }
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
