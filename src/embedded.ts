// Entry point `pulsework/embedded`: the broker in this process and the transport on it.
export { EmbeddedBroker } from './broker/embedded-broker.js';
export type { ConsumerRequest, EmbeddedBrokerOptions } from './broker/embedded-broker.js';
export type { BrokerOptions } from './broker/broker-options.js';
export type { ConsumerSink, DeliveredEntry } from './broker/broker-consumer.js';
export type { ConsumerHandle } from './broker/consumer-handle.js';
export type { AcknowledgementRecord, BrokerStore, EntryAddress, Stored } from './broker/broker-store.js';
export type { ConsumerStats, SubscriptionStats, TopicStats } from './broker/topic-stats.js';
export { EmbeddedTransport, embedded } from './transports/embedded/embedded-transport.js';
export type { EmbeddedOptions } from './transports/embedded/embedded-transport.js';
