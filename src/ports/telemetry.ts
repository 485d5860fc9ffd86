// What observers are told of each settlement. Telemetry and plugins get the same value.
import type { DeadLetterCause } from '../core/dead-letter.js';
import type { MessageKey } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { Failure, OutcomeKind } from '../core/outcome.js';
import type { MessageProperties } from '../core/properties.js';
import type { RedeliveryStrategy, Settlement } from '../core/settlement.js';

/** One delivery was settled, or put aside to wait. */
export interface SettlementReport {
  readonly handler: string;
  readonly subscription: string;
  /** Full topic name without a partition. */
  readonly topic: string;
  readonly id: MessageId;
  readonly key: MessageKey | undefined;
  readonly properties: MessageProperties;
  readonly attempt: number;
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

/** Observes the journey of messages. Must not throw; what it does throw is contained and logged. */
export interface Telemetry {
  onSettled(report: SettlementReport): void;
}
