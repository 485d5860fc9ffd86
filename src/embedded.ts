// Entry point `pulsework/embedded`: the broker in this process and the transport on it.
import { memoryMetadataStore } from './stores/memory/memory-metadata-store.js';
import { embedded as embeddedOn } from './transports/embedded/embedded-transport.js';
import type { EmbeddedOptions, EmbeddedTransport } from './transports/embedded/embedded-transport.js';

export { EmbeddedBroker } from './broker/embedded-broker.js';
export type { EmbeddedBrokerOptions } from './broker/embedded-broker.js';
export type { AccessMode } from './core/access-mode.js';
export type { ConsumerRequest, ForceOption, ProducerRequest } from './broker/broker-requests.js';
export type { ChunkOrigin } from './broker/entry.js';
export type { ProducerHandle } from './broker/producer-handle.js';
export type { TopicsChanged } from './broker/topic-registry.js';
export type { BrokerOptions } from './broker/broker-options.js';
export type { ConsumerSink, DeliveredEntry } from './broker/broker-consumer.js';
export type { ConsumerHandle } from './broker/consumer-handle.js';
export type { AcknowledgementRecord, BrokerStore, EntryAddress, Stored } from './broker/broker-store.js';
export type { ConsumerStats, ProducerStats, SubscriptionStats, TopicStats } from './broker/topic-stats.js';
export { EmbeddedTransport } from './transports/embedded/embedded-transport.js';
export { memoryMetadataStore } from './stores/memory/memory-metadata-store.js';
export type { BrokerTransactionOptions, BrokerTransactions } from './broker/transactions/broker-transactions.js';
export type { CoordinatorOptions } from './broker/transactions/coordinator-options.js';
export type { EmbeddedOptions, EmbeddedPublisherOptions } from './transports/embedded/embedded-transport.js';
export type { EmbeddedPublisher } from './transports/embedded/embedded-publisher.js';
export type { EmbeddedSubscription } from './transports/embedded/embedded-subscription.js';

/** A transport on an embedded broker in this process, with transactions. @throws ConfigurationError. */
export function embedded(options: EmbeddedOptions = {}): EmbeddedTransport {
  return embeddedOn(options, memoryMetadataStore);
}
