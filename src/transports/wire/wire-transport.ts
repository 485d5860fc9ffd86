// The Transport port over Pulsar's binary protocol: the wire client as the runtime sees it.
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import type { Capability, Publisher, PublisherRequest, Subscription, Transport } from '../../ports/transport.js';
import type { Transaction, TransactionOptions } from '../../ports/transaction.js';
import { WireClient } from './wire-client.js';
import type { WireOptions } from './wire-options.js';

const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  'ack-receipts',
  'cumulative-ack',
  'redelivery-count',
  'delayed-delivery',
  'flow-pause',
  'pattern-subscriptions',
  'transactions',
]);

/** Who awaits one receipt must not wait for others, and any subscription may turn out to share messages by key. */
const PUBLISHER_OPTIONS = { batching: { maxDelayMs: 0, byKey: true } } as const;

/** A transport on real Pulsar. Nothing is connected before it is needed. @throws ConfigurationError. */
export function wire(options: WireOptions): WireTransport {
  return new WireTransport(new WireClient(options));
}

export class WireTransport implements Transport {
  readonly name = 'wire';
  readonly capabilities: ReadonlySet<Capability>;
  readonly client: WireClient;

  constructor(client: WireClient) {
    this.client = client;
    this.capabilities = client.speaksOrderedNegativeAck
      ? new Set<Capability>([...CAPABILITIES, 'ordered-negative-ack'])
      : CAPABILITIES;
  }

  get maxMessageBytes(): number {
    return this.client.maxMessageBytes;
  }

  subscribe({ topics, pattern, ...spec }: SubscriptionSpec): Promise<Subscription> {
    return this.client.openSubscription(pattern === undefined ? { ...spec, topics } : { ...spec, pattern });
  }

  publisher(topic: string, { initialSubscription, producerName }: PublisherRequest = {}): Promise<Publisher> {
    return this.client.publisher(topic, { ...PUBLISHER_OPTIONS, initialSubscription, producerName });
  }

  newTransaction(options?: TransactionOptions): Promise<Transaction> {
    return this.client.newTransaction(options);
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
