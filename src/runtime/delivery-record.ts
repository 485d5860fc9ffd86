// What the runtime knows of one message while it is in this process with its payload: from arrival to settlement,
// or until only its id is left waiting in the NegativeAckTracker.
import type { DeadLetterCause } from '../core/dead-letter.js';
import { formatMessageId } from '../core/message-id.js';
import type { Failure, Outcome } from '../core/outcome.js';
import { withoutPartition } from '../core/topic-name.js';
import type { Timer } from '../ports/clock.js';
import type { LogFields } from '../ports/logger.js';
import type { RunObserver } from '../ports/telemetry.js';
import type { FailureHistory } from './failure-histories.js';
import { NO_FAILURES } from './failure-histories.js';
import type { ArrivedMessage } from './joined-subscription.js';
import type { PendingSettlement } from './pending-settlement.js';

/**
 * `waiting`: arrived, not started. `running`: its handler runs or its settlement is being made. `kept`: to be run again
 * in place when due. `unsettled`: its settlement failed and is made again when due. `returning`: acknowledged in a transaction
 * that may not have been committed; its copy is awaited. `gone`: settled or given back.
 */
export type RecordState = 'waiting' | 'running' | 'kept' | 'unsettled' | 'returning' | 'gone';

/** Why a message was given up, while it waits for a person to decide. */
export interface GivenUp {
  readonly cause: DeadLetterCause;
  readonly failure: Failure;
  readonly outcome: Outcome;
  /** Before the failure that was its last: what is done with it later is done on that attempt. */
  readonly history: FailureHistory;
}

export class DeliveryRecord {
  /** The newest copy: a message that arrives again while this record lives replaces it. */
  message: ArrivedMessage;
  state: RecordState = 'waiting';
  /** Failed runs of this message seen by this process, and when the first was. */
  history: FailureHistory;
  /** Probes in a row that found the dependency down. */
  probes = 0;
  /** What is left of a settlement whose call failed; undefined when the handler is what comes next. */
  pending: PendingSettlement | undefined;
  /** Why it was given up and waits for a person; undefined for all others. */
  givenUp: GivenUp | undefined;
  /** Runs when a `kept` or `unsettled` one is due; undefined when nothing is waited for. */
  timer: Timer | undefined;
  /** The broker refused its retry letter for good: from now on it waits here. */
  republishRefused = false;
  /** When what goes on with it now, or went on last, started: a run or a settlement; epoch milliseconds. */
  startedMs = 0;
  /** The broker is to be asked for its copy: one that comes before is no answer, and may be of a message that is done. */
  toBeAskedFor = false;
  /** Who observes that run, if anybody does. */
  observer: RunObserver | undefined;
  /** When a kept one is due, epoch milliseconds. */
  dueMs = 0;

  readonly #brokerCounts: boolean;

  /** @param brokerCounts whether the broker's count tells of failures only. */
  constructor(message: ArrivedMessage, history: FailureHistory, brokerCounts = true) {
    this.#brokerCounts = brokerCounts;
    this.message = message;
    this.history = history;
    const { letter } = message;
    if (letter === undefined) return;
    const { attempts: failures, firstFailureMs } = letter;
    if (history === NO_FAILURES) this.history = { failures, firstFailureMs, uncounted: 0 };
    this.dueMs = letter.dueMs;
  }

  /** The id of the message as it came first: the same on every attempt, retry letters included. */
  get originId(): string {
    return this.message.letter?.originId ?? formatMessageId(this.message.id);
  }

  /** Full name of the topic it came from first, without a partition. */
  get originTopic(): string {
    return this.message.letter?.originTopic ?? withoutPartition(this.message.id.topic);
  }

  /**
   * 1 on the first delivery; never lower than what this process has seen, never counting what was not a failure. The
   * broker counts per entry, so in a producer batch its number may be a neighbour's failures: the smaller is assumed.
   */
  get attempt(): number {
    const { id, redeliveryCount } = this.message;
    const { failures, uncounted } = this.history;
    const counted = !this.#brokerCounts || id.batchSize > 1 ? 0 : redeliveryCount - uncounted;
    return Math.max(counted, failures) + 1;
  }

  get payloadBytes(): number {
    return this.message.payload?.length ?? 0;
  }

  /** It was acknowledged in a transaction: until the end of that is known, no other connection brings it. */
  get outlivesConnection(): boolean {
    return this.state === 'returning' || this.pending?.transaction !== undefined;
  }

  /** What each log line about it says. */
  lineFields(handler: string): LogFields {
    const { message, originTopic: topic, attempt } = this;
    return { handler, topic, messageId: formatMessageId(message.id), attempt };
  }

  /** Its handler runs, or its settlement is made, from now on. */
  begin(nowMs: number): void {
    this.state = 'running';
    this.startedMs = nowMs;
  }
}
