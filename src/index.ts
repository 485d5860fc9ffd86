// The public API of `pulsework`: words, decisions, ports and the runtime. Named exports only.

// outcomes
export {
  defer,
  dependencyDown,
  fatal,
  isOutcome,
  on,
  poison,
  retry,
  retryAfter,
  skip,
  success,
} from './core/outcome.js';
export type { ErrorRule, Failure, Outcome, OutcomeKind } from './core/outcome.js';

// messages and topics
export { topic } from './core/topic.js';
export type { Topic, TopicOptions } from './core/topic.js';
export { bytesCodec, jsonCodec, textCodec } from './core/codec.js';
export type { Codec } from './core/codec.js';
export type { EncodedMessage, MessageKey, MessageOptions, OutgoingMessage, ReceivedMessage } from './core/message.js';
export type { MessageProperties } from './core/properties.js';
export type { Delivery } from './core/delivery.js';
export { compareMessageIds, formatMessageId, parseMessageId, sameMessageId } from './core/message-id.js';
export type { EntryPosition, MessageId } from './core/message-id.js';
export { deadLetterTopicName, fullTopicName } from './core/topic-name.js';

// handlers
export { HANDLER_CLASS, defineHandler } from './core/handler-definition.js';
export type {
  HandlerClass,
  HandlerClassDefinition,
  HandlerDefinition,
  HandlerDefinitionOptions,
  HandlerFunction,
  HandlerMethod,
  HandlerOptions,
  PayloadOf,
  Source,
  SourcePayload,
} from './core/handler-definition.js';
export type { InitialPosition, Ordering, SubscriptionSpec, SubscriptionType } from './core/subscription-spec.js';

// redelivery and dead letters
export { exponentialBackoff, fixedBackoff } from './core/backoff.js';
export type { Backoff, ExponentialBackoffOptions } from './core/backoff.js';
export type { RedeliveryPolicy, RedeliveryPolicyOptions } from './core/redelivery-policy.js';
export type { RedeliveryStrategy, Settlement } from './core/settlement.js';
export type { DeadLetterCause } from './core/dead-letter.js';
export type { Redact } from './core/redaction.js';
export { days, hours, minutes, seconds } from './core/options.js';

export { NegativeAckTracker } from './redelivery/negative-ack-tracker.js';
export type { HeldMessage, NackedMessage, NegativeAckTrackerOptions } from './redelivery/negative-ack-tracker.js';

// errors
export { ConfigurationError, ERROR_CODES, PulseworkError, TransportError } from './core/errors.js';
export type { ErrorCode } from './core/errors.js';

// ports
export type { Clock, Timer } from './ports/clock.js';
export type { LogFields, Logger } from './ports/logger.js';
export type { Plugin, PublishRequest } from './ports/plugin.js';
export type { SettlementReport, Telemetry } from './ports/telemetry.js';
export type { Capability, Publisher, Subscription, SubscriptionState, Transport } from './ports/transport.js';
export { consoleLogger } from './system/console-logger.js';
export { systemClock } from './system/system-clock.js';
export type { ConsoleLoggerOptions, LogLevel } from './system/console-logger.js';

// the runtime
export type { HandlerResolver, ResolvableClass } from './runtime/handler-classes.js';
export { Runtime } from './runtime/runtime.js';
export type { DrainReport } from './runtime/runtime.js';
export type { RuntimeState } from './runtime/lifecycle.js';
export type { PauseReason } from './runtime/pauses.js';
export type { RuntimeOptions } from './runtime/runtime-options.js';
export type { SubscriptionHandle, SubscriptionHealth } from './runtime/subscription-handle.js';
export type { TopicPublisher } from './runtime/topic-publisher.js';
export type { TopologyEntry } from './runtime/topology.js';
