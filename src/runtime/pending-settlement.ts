// How far a settlement has come. It is kept when a call fails, so that repeating it publishes nothing twice that has
// a receipt already, and repeats what is unknown with the same sequence id.
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { Outcome } from '../core/outcome.js';
import type { Settlement } from '../core/settlement.js';
import type { PublishKind, RunObserver } from '../ports/telemetry.js';
import type { Transaction } from '../ports/transaction.js';
import type { Publisher } from '../ports/transport.js';
import type { ArrivedMessage } from './joined-subscription.js';

export interface PendingSettlement {
  readonly outcome: Outcome;
  readonly settlement: Settlement;
  /** A person decided it, after the run had ended. @default it follows from the run */
  readonly byPerson?: true | undefined;
  /** When the run started, for the report. */
  readonly startedMs: number;
  /** Who observes the run, if anybody does. */
  readonly observer: RunObserver | undefined;
  /** What is to be published before the acknowledgement; undefined until it is encoded. */
  publishes: PendingPublish[] | undefined;
  /** The transaction that the acknowledgement is in, until its end is known: only that end is asked for again. */
  transaction: AcknowledgedIn | undefined;
  /** The broker refused the dead letter for good: a drain does not wait for it. */
  refused: boolean;
  /** Calls that failed so far: the wait before the next grows with it. */
  failures: number;
}

/** Nothing of it is done yet. */
export function newSettlement(
  outcome: Outcome,
  settlement: Settlement,
  { startedMs, observer, byPerson }: Pick<PendingSettlement, 'startedMs' | 'observer' | 'byPerson'>,
): PendingSettlement {
  return {
    outcome,
    settlement,
    byPerson,
    startedMs,
    observer,
    publishes: undefined,
    transaction: undefined,
    refused: false,
    failures: 0,
  };
}

/** A transaction that the message is acknowledged in, or may be. */
export interface AcknowledgedIn {
  readonly transaction: Transaction;
  /** The copy that was acknowledged: once another one is here, it has come again. */
  readonly copy: ArrivedMessage;
  /** Why it is to be aborted: the acknowledgement failed. Then it is never committed. */
  readonly failure: Error | undefined;
  /** It was asked to commit, and gave no answer that says whether it did. */
  mayBeCommitted: boolean;
}

export interface PendingPublish {
  readonly kind: PublishKind;
  /** Full topic name. */
  readonly topic: string;
  readonly message: EncodedMessage;
  /** It was recorded earlier, with the context that it belongs to. @default false */
  readonly isRelayed?: boolean | undefined;
  /** A subscription to keep it for, where the topic has none of that name. */
  readonly initialSubscription?: string | undefined;
  /** The producer that `sequenceId` counts for: another one counts its own. */
  by?: Publisher | undefined;
  /** Taken at the first try; a repeat uses it again. */
  sequenceId: number | undefined;
  /** Where the broker stored it; undefined until it says so. */
  receipt: MessageId | undefined;
}
