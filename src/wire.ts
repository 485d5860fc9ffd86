// Entry point `pulsework/wire`: Pulsar's binary protocol in TypeScript, without a native addon.
export { WireClient } from './transports/wire/wire-client.js';
export type { WireConsumerOptions, WireSubscribeOptions } from './transports/wire/wire-consumer-options.js';
export type { WireConsumer } from './transports/wire/wire-consumer.js';
export type { AccessMode } from './core/access-mode.js';
export type { BatchingOptions, Routing, WirePublisherOptions } from './transports/wire/publisher-options.js';
export type { WireReader } from './transports/wire/wire-reader.js';
export type { WireReaderOptions } from './transports/wire/wire-reader-options.js';
export type { PatternDomain } from './core/topic-pattern.js';
export type { WirePublisher } from './transports/wire/wire-publisher.js';
export type { WireSubscription } from './transports/wire/wire-subscription.js';
export type { TransactionId } from './core/transaction-id.js';
export type { InTransaction, Transaction, TransactionOptions, TransactionState } from './ports/transaction.js';
export type { TopicSchema, WireSchema } from './transports/wire/topic-schema.js';
export { WireTransport, wire } from './transports/wire/wire-transport.js';
export {
  basicAuthentication,
  tlsAuthentication,
  tokenAuthentication,
} from './transports/wire/authentication/authentication.js';
export type {
  Authentication,
  BasicAuthenticationOptions,
  Secret,
} from './transports/wire/authentication/authentication.js';
export { oauth2Authentication } from './transports/wire/authentication/oauth2-authentication.js';
export type { OAuth2Options } from './transports/wire/authentication/oauth2-options.js';
export type { HttpAnswer, HttpFetch, HttpRequest } from './ports/http.js';
export type { TlsOptions } from './transports/wire/tls-options.js';
export type { WireOptions } from './transports/wire/wire-options.js';
// what a consumer is told and answers: the same as in `pulsework`
export type { Admission, ReturnReason } from './transports/wire/wire-consumer.js';
export type { OrderedNegativeAckMode } from './core/subscription-spec.js';
export { exponentialBackoff, fixedBackoff, steppedBackoff } from './core/backoff.js';
export type { Backoff, ExponentialBackoffOptions } from './core/backoff.js';
