// Entry point `pulsework/wire`: Pulsar's binary protocol in TypeScript, without a native addon.
export { WireClient } from './transports/wire/wire-client.js';
export type { WireConsumerOptions, WireSubscribeOptions } from './transports/wire/wire-consumer-options.js';
export type { WireConsumer } from './transports/wire/wire-consumer.js';
export type { BatchingOptions, Routing, WirePublisherOptions } from './transports/wire/publisher-options.js';
export type { WirePublisher } from './transports/wire/wire-publisher.js';
export type { WireSubscription } from './transports/wire/wire-subscription.js';
export { WireTransport, wire } from './transports/wire/wire-transport.js';
export { tokenAuthentication } from './transports/wire/wire-options.js';
export type { Authentication, TlsOptions, WireOptions } from './transports/wire/wire-options.js';
// what a consumer is told: the same functions as in `pulsework`
export { exponentialBackoff, fixedBackoff, steppedBackoff } from './core/backoff.js';
export type { Backoff, ExponentialBackoffOptions } from './core/backoff.js';
