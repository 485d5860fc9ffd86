// What an observer is told of the journey of messages, and where it may put its context on them. A binding to a tracing
// or metrics system implements it; the runtime contains whatever it throws.
import type { DeadLetterCause } from '../core/dead-letter.js';
import type { EncodedMessage, MessageKey } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { Failure, OutcomeKind } from '../core/outcome.js';
import type { MessageProperties } from '../core/properties.js';
import type { RedeliveryStrategy, Settlement } from '../core/settlement.js';
import type { LogFields } from './logger.js';
import type { RuntimeView } from './runtime-view.js';
import type { WorkflowHooks } from './workflow-telemetry.js';

/**
 * Each method is optional. None may throw (what it throws is logged and changes nothing), none is awaited, and none is
 * called before `onStart` or after `onClose`.
 */
export interface Telemetry extends WorkflowHooks {
  /** Before the first delivery: the place to make instruments. */
  onStart?(runtime: RuntimeView): void;
  /** A handler gets a delivery: one run is one attempt. Undefined where nobody wants to know what becomes of it. */
  startRun?(start: RunStart): RunObserver | undefined;
  /** A batch handler gets its deliveries; called in place of `startRun` for each. */
  startBatch?(start: BatchStart): BatchObserver | undefined;
  /** A message leaves for the broker; once for each try. */
  startPublish?(start: PublishStart): PublishObserver | undefined;
  /** Each settlement, also those without a run. */
  onSettled?(report: SettlementReport): void;
  /** The runtime takes no more. */
  onDrain?(): void;
  /** Everything is closed. */
  onClose?(): void;
}

/** Which delivery to which handler. */
export interface DeliveryFacts {
  readonly handler: string;
  readonly subscription: string;
  /** Full name of the topic the message came from first, without a partition. */
  readonly topic: string;
  /** What stands for the topics of a handler that takes them by pattern; absent where it names them. */
  readonly topicTemplate?: string | undefined;
  /** Where this copy arrived: the topic with its partition, which may be a retry letter topic. */
  readonly id: MessageId;
  readonly key: MessageKey | undefined;
  readonly properties: MessageProperties;
  readonly attempt: number;
}

export interface RunStart extends DeliveryFacts {
  /** The broker's count. */
  readonly redeliveryCount: number;
  readonly payloadBytes: number;
}

/** Exactly one of `settled` and `dropped` ends it; `settlementFailed` may come before, any number of times. */
export interface RunObserver {
  /** Fields for each log line about the run, such as a trace id. */
  readonly logFields?: LogFields | undefined;
  /** Calls `run` so that what it starts belongs to this run, and returns what it returns. */
  within<T>(run: () => T): T;
  /** The acknowledgement leaves for the broker. */
  startAcknowledge?(): CallObserver | undefined;
  /** A call to the coordinator of the transaction that the settlement is made in leaves for the broker. */
  startTransaction?(call: TransactionCall): CallObserver | undefined;
  /** The delivery is settled, or put aside to wait. */
  settled(report: SettlementReport): void;
  /** A call of the settlement failed; it is made again later. @param report as it would be settled */
  settlementFailed(call: string, error: Error, report: SettlementReport): void;
  /**
   * It ended without a settlement: a drain cut it short, it may not start after all, its subscription is closed, or its
   * transaction was not committed, or not known to be, and the delivery comes again.
   */
  dropped(): void;
}

/** What is asked of a transaction's coordinator. */
export type TransactionCall = 'begin' | 'commit' | 'abort';

export interface BatchStart {
  readonly handler: string;
  readonly subscription: string;
  readonly deliveries: readonly RunStart[];
}

export interface BatchObserver {
  /** One for each delivery, in their order. */
  readonly runs: readonly (RunObserver | undefined)[];
  /** Calls `run` so that what it starts belongs to the batch, and returns what it returns. */
  within<T>(run: () => T): T;
  /** The batch handler has ended. @param error what it threw */
  ended(error: Error | undefined): void;
}

/** `message`: of a user, from an outcome or a publisher. The letters are copies of the message that was handled. */
export type PublishKind = 'message' | 'dead-letter' | 'retry-letter';

export interface PublishStart {
  readonly kind: PublishKind;
  /** Full name. */
  readonly topic: string;
  /** As it would be published without an observer. A letter has the properties of the original. */
  readonly message: EncodedMessage;
  /** The run it follows from; undefined for what is published outside handlers. */
  readonly run: RunObserver | undefined;
  /** It was recorded earlier, to be sent now: what is active here has nothing to do with it. @default false */
  readonly isRelayed?: boolean | undefined;
}

/** Exactly one of `done` and `failed` ends it. */
export interface CallObserver {
  done(): void;
  failed(error: Error): void;
}

export interface PublishObserver {
  /** What the message is published with: usually its own properties and a trace context. */
  readonly properties: MessageProperties;
  done(id: MessageId): void;
  failed(error: Error): void;
}

/** One delivery was settled, or put aside to wait. Telemetry and plugins get the same value. */
export interface SettlementReport extends DeliveryFacts {
  readonly outcome: OutcomeKind;
  readonly settlement: Settlement['kind'];
  readonly strategy?: RedeliveryStrategy | undefined;
  /** Milliseconds until the next delivery, where the settlement is `redeliver`. */
  readonly delayMs?: number | undefined;
  readonly cause?: DeadLetterCause | undefined;
  readonly failure?: Failure | undefined;
  /** From the start of the run to the end of the settlement, milliseconds. */
  readonly durationMs: number;
}
