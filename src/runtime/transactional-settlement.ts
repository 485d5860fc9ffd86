// Settles a success with messages in one transaction: what follows from the message is published and the message
// acknowledged, all of it or nothing. The order of the calls is that of `perform`. Before the acknowledgement is sent a call
// that fails costs nothing but another transaction with the same outcome; after it the delivery comes again by the abort.
// Whether it was sent is what the port says of it (`TransportError.sent`).
import { TransportError, containRejection, toError } from '../core/errors.js';
import type { ErrorCode } from '../core/errors.js';
import type { OutgoingMessage } from '../core/message.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { TransactionCall } from '../ports/telemetry.js';
import type { Transaction } from '../ports/transaction.js';
import type { Subscription, Transport } from '../ports/transport.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { FollowUps } from './follow-ups.js';
import type { HandlerPlan } from './handler-plan.js';
import type { OrderedNegativeAcks } from './ordered-negative-acks.js';
import type { AcknowledgedIn, PendingSettlement } from './pending-settlement.js';
import type { PortCalls } from './port-calls.js';
import type { PublishFailure } from './publishers.js';
import type { TelemetryHost } from './telemetry-host.js';

/** How far it came. `call` names the one that failed. */
export type TransactionEnd =
  | { readonly kind: 'committed' }
  /** Nothing of it counts, and the message is still here: the same outcome goes into another transaction. */
  | { readonly kind: 'not-published'; readonly failure: PublishFailure }
  /** `perform` goes on with it later: with the end of the transaction, or with another one, as `pending` says. */
  | { readonly kind: 'again'; readonly call: string; readonly error: Error }
  /** The message comes again, unless the transaction was committed after all: then nothing does. */
  | { readonly kind: 'comes-again'; readonly call: string; readonly error: Error; readonly isHere: boolean };

/** After these, to the first request to commit, nothing of it counts. After a repeated one they say that it is over, not how. */
const NOT_COMMITTED: readonly ErrorCode[] = ['TRANSACTION_ABORTED', 'TRANSACTION_ENDED'];

const ACKNOWLEDGING = 'acknowledging';
const WORDS: Readonly<Record<TransactionCall, string>> = {
  begin: 'beginning a transaction',
  commit: 'committing a transaction',
  abort: 'aborting a transaction',
};

export interface TransactionalSettlementOptions {
  readonly plan: HandlerPlan;
  readonly transport: Pick<Transport, 'newTransaction'>;
  readonly subscription: Subscription;
  readonly registry: Pick<DeliveryRegistry, 'askFor'>;
  readonly orderedNegativeAcks: Pick<OrderedNegativeAcks, 'acknowledging'>;
  readonly followUps: Pick<FollowUps, 'encode' | 'publishIn'>;
  readonly calls: PortCalls;
  readonly telemetry: TelemetryHost;
}

export class TransactionalSettlement {
  readonly #options: TransactionalSettlementOptions;

  constructor(options: TransactionalSettlementOptions) {
    this.#options = options;
  }

  /** Never rejects. Progress stays in `pending`, so that a repeat goes on from it. */
  async perform(
    record: DeliveryRecord,
    messages: readonly OutgoingMessage[],
    pending: PendingSettlement,
  ): Promise<TransactionEnd> {
    if (pending.transaction !== undefined) return this.#end(record, pending, pending.transaction);

    const unreadable = await this.#options.followUps.encode(record, messages, pending);
    if (unreadable !== undefined) return { kind: 'not-published', failure: unreadable };

    const transaction = await this.#begin(pending);
    if (transaction instanceof Error) return { kind: 'again', call: WORDS.begin, error: transaction };

    const failure = await this.#options.followUps.publishIn(transaction, pending);
    if (failure !== undefined) {
      await this.#discard(transaction, pending);
      return { kind: 'not-published', failure };
    }

    const acknowledged = await this.#acknowledge(record, transaction, pending);
    if (isNotSent(acknowledged.failure)) {
      await this.#discard(transaction, pending);
      return { kind: 'again', call: ACKNOWLEDGING, error: acknowledged.failure };
    }
    return this.#end(record, pending, acknowledged);
  }

  async #begin(pending: PendingSettlement): Promise<Transaction | Error> {
    const { transport, plan } = this.#options;
    let begun: Promise<Transaction> | undefined;
    const begin = (): Promise<Transaction> => {
      if (transport.newTransaction === undefined) throw new Error('the transport has no transactions');
      return (begun = transport.newTransaction({ timeoutMs: plan.transactional?.timeoutMs }));
    };
    try {
      return await this.#call('begin', pending, begin);
    } catch (error) {
      // One that begins after its time limit belongs to nobody, and readers would wait for it.
      containRejection(begun?.then((late) => late.abort()));
      return toError(error);
    }
  }

  /** The message is not in it: it is still here, whatever becomes of the transaction. */
  async #discard(transaction: Transaction, pending: PendingSettlement): Promise<void> {
    // Where that fails the broker aborts it when its time is over: nobody asks to commit it.
    await this.#call('abort', pending, () => transaction.abort()).catch(() => undefined);
  }

  /** Last in it, and alone: a cumulative one would take along what has its own settlement. */
  async #acknowledge(
    record: DeliveryRecord,
    transaction: Transaction,
    pending: PendingSettlement,
  ): Promise<AcknowledgedIn> {
    const { subscription, orderedNegativeAcks, telemetry, calls } = this.#options;
    const { message: copy } = record;
    const observed = telemetry.startAcknowledge(pending.observer);
    orderedNegativeAcks.acknowledging(copy.id);
    try {
      await calls.run(ACKNOWLEDGING, () => subscription.acknowledge([copy.id], { transaction }));
      telemetry.done(observed);
      return { transaction, copy, failure: undefined, mayBeCommitted: false };
    } catch (error) {
      const failure = toError(error);
      telemetry.failed(observed, failure);
      return { transaction, copy, failure, mayBeCommitted: false };
    }
  }

  /** Commits, or aborts where the acknowledgement failed, until it is known to be over. */
  async #end(record: DeliveryRecord, pending: PendingSettlement, open: AcknowledgedIn): Promise<TransactionEnd> {
    pending.transaction = open;
    const end =
      open.failure === undefined
        ? await this.#commit(record, pending, open)
        : await this.#abort(record, pending, open, open.failure);
    if (end.kind !== 'again') pending.transaction = undefined;
    return end;
  }

  async #commit(record: DeliveryRecord, pending: PendingSettlement, open: AcknowledgedIn): Promise<TransactionEnd> {
    try {
      await this.#call('commit', pending, () => open.transaction.commit());
      return { kind: 'committed' };
    } catch (thrown) {
      const error = toError(thrown);
      // Only its answer did not come through.
      if (open.transaction.state === 'committed') return { kind: 'committed' };
      if (!isFinal(error)) {
        open.mayBeCommitted = true;
        return { kind: 'again', call: WORDS.commit, error };
      }
      const isAborted = !open.mayBeCommitted && NOT_COMMITTED.includes(error.code);
      return this.#comesAgain(record, open, { isAborted, call: WORDS.commit, error });
    }
  }

  async #abort(
    record: DeliveryRecord,
    pending: PendingSettlement,
    open: AcknowledgedIn,
    failure: Error,
  ): Promise<TransactionEnd> {
    try {
      await this.#call('abort', pending, () => open.transaction.abort());
    } catch (thrown) {
      const error = toError(thrown);
      // It was never to be committed: when it is over, it is aborted.
      if (!isFinal(error)) return { kind: 'again', call: WORDS.abort, error };
    }
    return this.#comesAgain(record, open, { isAborted: true, call: ACKNOWLEDGING, error: failure });
  }

  /**
   * After a known abort the broker sends the message by itself on Shared and Key_Shared; it has to be asked for it where a
   * request sends everything, and where the end is unknown: a message that was acknowledged after all is not sent (S-22).
   */
  #comesAgain(
    record: DeliveryRecord,
    { copy }: AcknowledgedIn,
    { isAborted, ...why }: { readonly isAborted: boolean; readonly call: string; readonly error: Error },
  ): TransactionEnd {
    const { plan, registry } = this.#options;
    // One that came before a request for it may be of a message that is acknowledged: only after a known abort it is worth a run.
    const isHere = isAborted && record.message !== copy;
    const comesByItself = isAborted && redeliversSingly(plan.spec.type);
    if (!isHere && !comesByItself) registry.askFor(record);
    return { kind: 'comes-again', isHere, ...why };
  }

  async #call<T>(call: TransactionCall, { observer }: PendingSettlement, run: () => Promise<T>): Promise<T> {
    const { calls, telemetry } = this.#options;
    const observed = telemetry.startTransaction(observer, call);
    try {
      const result = await calls.run(WORDS[call], run);
      telemetry.done(observed);
      return result;
    } catch (error) {
      telemetry.failed(observed, toError(error));
      throw error;
    }
  }
}

/** The broker has not heard of it and never will: no end of the transaction brings the message. */
function isNotSent(failure: Error | undefined): failure is TransportError {
  return failure instanceof TransportError && !failure.sent;
}

/** Asking again would change nothing. */
function isFinal(error: Error): error is TransportError {
  return error instanceof TransportError && !error.retriable;
}
