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
export { deadLetterTopicName, fullTopicName, retryTopicName } from './core/topic-name.js';

// handlers
export type { BatchHandlerFunction, BatchLimits, BatchOptions, BatchOutcome } from './core/batch-handler.js';
export type { DeliveryPauseOptions } from './core/delivery-pause.js';
export type { FairnessMessage, FairnessOptions } from './core/fairness.js';
export { HANDLER_CLASS, defineHandler } from './core/handler-definition.js';
export type {
  BatchHandlerDefinitionOptions,
  DeadLetterRefusal,
  HandlerClass,
  HandlerClassDefinition,
  HandlerDefinition,
  HandlerDefinitionOptions,
  HandlerFunction,
  HandlerMethod,
  HandlerOptions,
  OnDeadLetter,
  PayloadOf,
  RefusalChoice,
  RefusalDecision,
  Source,
  SourceCodec,
  SourcePayload,
} from './core/handler-definition.js';
export type {
  InitialPosition,
  OrderedNegativeAckMode,
  Ordering,
  SubscriptionSpec,
  SubscriptionType,
} from './core/subscription-spec.js';

// redelivery and dead letters
export { exponentialBackoff, fixedBackoff, steppedBackoff } from './core/backoff.js';
export type { Backoff, ExponentialBackoffOptions } from './core/backoff.js';
export type { RedeliveryPolicy, RedeliveryPolicyOptions } from './core/redelivery-policy.js';
export type { DeadLetterChoice, RedeliveryStrategy, Settlement } from './core/settlement.js';
export type { DeadLetterCause } from './core/dead-letter.js';
export type { Redact } from './core/redaction.js';
export { days, hours, minutes, seconds } from './core/options.js';

export { NegativeAckTracker } from './redelivery/negative-ack-tracker.js';
export type { HeldMessage, NackedMessage } from './redelivery/negative-ack-tracker.js';
export type { NegativeAckTrackerOptions } from './redelivery/negative-ack-options.js';
export { KeyGuards } from './redelivery/key-guards.js';
export type { KeyedMessage } from './redelivery/key-guards.js';
export { OrderedAdmission } from './redelivery/ordered-admission.js';
export type { Admission, OrderedAdmissionOptions, ReturnReason } from './redelivery/ordered-admission.js';
export { AckTimeoutTracker } from './redelivery/ack-timeout-tracker.js';
export type { AckTimeoutTrackerOptions } from './redelivery/ack-timeout-tracker.js';

// errors
export { ConfigurationError, ERROR_CODES, PulseworkError, TransportError } from './core/errors.js';
export type { ErrorCode } from './core/errors.js';

// ports
export type { AttemptRecord, AttemptStore, AttemptStoreSummary } from './ports/attempt-store.js';
export type { AttemptEnd, AttemptStart } from './core/attempt-records.js';
export type { Clock, Timer } from './ports/clock.js';
export type { ClaimAnswer, IdempotencyStore, LeaseTimes, RecordTimes } from './ports/idempotency-store.js';
export type { RecordedError, RecordedMessage, RecordedOutcome } from './core/recorded-outcome.js';
export type { LogFields, Logger } from './ports/logger.js';
export type { Plugin, PublishRequest } from './ports/plugin.js';
export type {
  BlockedKey,
  DeliveryPauseHealth,
  PauseReason,
  RuntimeControl,
  RuntimeView,
  SubscriptionHealth,
} from './ports/runtime-view.js';
export type {
  BatchObserver,
  BatchStart,
  CallObserver,
  PublishKind,
  PublishObserver,
  PublishStart,
  RunObserver,
  RunStart,
  SettlementReport,
  Telemetry,
  TransactionCall,
} from './ports/telemetry.js';
export type { InTransaction, Transaction, TransactionOptions, TransactionState } from './ports/transaction.js';
export type { TransactionId } from './core/transaction-id.js';
export type { TransactionalOptions } from './core/transactional-options.js';
export type {
  Capability,
  Publisher,
  PublisherRequest,
  Subscription,
  SubscriptionState,
  Transport,
} from './ports/transport.js';
export { consoleLogger } from './system/console-logger.js';
export { pinoLogger } from './system/pino-logger.js';
export type { PinoLike } from './system/pino-logger.js';
export { currentDelivery } from './system/current-delivery.js';
export { systemClock } from './system/system-clock.js';
export type { ConsoleLoggerOptions, LogLevel } from './system/console-logger.js';

// the runtime
export { explain } from './runtime/explain.js';
export type { ExplainOptions, Explanation } from './runtime/explain.js';
export type { CrashConsequence, HandlerExplanation, WaitExplanation } from './runtime/explanation.js';
export type { HandlerResolver, ResolvableClass } from './runtime/handler-classes.js';
export { Runtime } from './runtime/runtime.js';
export type { DrainReport } from './runtime/runtime.js';
export type { RuntimeState } from './runtime/lifecycle.js';
export type { RuntimeTransaction, TransactionWork } from './runtime/runtime-transactions.js';
export type { RuntimeOptions } from './runtime/runtime-options.js';
export type { SubscriptionHandle } from './runtime/subscription-handle.js';
export type { TopicPublisher } from './runtime/topic-publisher.js';
export type { TopologyEntry } from './runtime/topology.js';

// idempotency
export { idempotent } from './runtime/idempotent.js';
export type { Idempotency, IdempotentOptions } from './runtime/idempotent.js';
export { memoryIdempotencyStore } from './stores/memory/memory-idempotency-store.js';
export type {
  MemoryIdempotencyStore,
  MemoryIdempotencyStoreOptions,
} from './stores/memory/memory-idempotency-store.js';

// effects in a database, and messages that follow from them
export { effects } from './runtime/effects.js';
export type { Effects, EffectsOptions } from './runtime/effects.js';
export type { EffectAnswer, EffectStore, EffectTimes, EffectTransaction } from './ports/effect-store.js';
export { Outbox } from './runtime/outbox/outbox.js';
export type { AsyncOutbox, RefusedMessage, SyncOutbox } from './runtime/outbox/outbox.js';
export type { OutboxHealth } from './ports/runtime-view.js';
export type {
  ClaimedRow,
  OutboxLead,
  OutboxRow,
  OutboxStore,
  OutboxSummary,
  RefusedRow,
} from './ports/outbox-store.js';
export type { OutboxRecord } from './core/outbox-record.js';
