// Performs settlements: the only place that acknowledges, negatively acknowledges or dead-letters. The order never
// changes: publish, await every receipt, then acknowledge. Whatever fails on the way leaves the message with the
// broker, and the settlement goes on from where it stood.
import { exponentialBackoff } from '../core/backoff.js';
import { isClosed, toError } from '../core/errors.js';
import type { ReceivedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { orderKeyOf } from '../core/message-key.js';
import type { Outcome } from '../core/outcome.js';
import { defer, publishRefused, retry } from '../core/outcome.js';
import { DEFAULT_REDELIVERY_POLICY } from '../core/redelivery-policy.js';
import type { DeadLetterSettlement, GiveUp, Redeliver, Settlement, SettlementFacts } from '../core/settlement.js';
import { probeDelayMs, settlementFor, settlementOfGivenUp } from '../core/settlement.js';
import type { Clock } from '../ports/clock.js';
import type { Subscription } from '../ports/transport.js';
import { CopyAcknowledgements } from './copy-acknowledgements.js';
import type { DeadLetterPublisher } from './dead-letter-publisher.js';
import type { DeliveryRecord, GivenUp } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import { afterFailure } from './failure-histories.js';
import type { FollowUps } from './follow-ups.js';
import type { HandlerPlan } from './handler-plan.js';
import type { OrderedNegativeAcks } from './ordered-negative-acks.js';
import type { PendingSettlement } from './pending-settlement.js';
import { newSettlement } from './pending-settlement.js';
import { isPlaceless } from './placeless-messages.js';
import type { PortCalls } from './port-calls.js';
import type { PublishFailure } from './publishers.js';
import type { RetryLetterPublisher } from './retry-letter-publisher.js';
import type { SettlementReporter } from './settlement-reporter.js';
import type { TelemetryHost } from './telemetry-host.js';
import type { TransactionEnd, TransactionalSettlement } from './transactional-settlement.js';

/**
 * What is left to do for the record. `settled`, `held`, `republished` and `left` need nothing more here. `keep`: run it again in
 * place. `again`: the settlement's call failed; `resume` it. `returns`: the broker sends it again, where its transaction was
 * not committed; what is later of its key waits for it.
 */
export type Disposition =
  | { readonly kind: 'settled' | 'held' | 'returns' }
  /** This copy is done; its letter carries `attempts` on. */
  | { readonly kind: 'republished'; readonly attempts: number }
  | { readonly kind: 'left'; readonly fatal: Error | undefined }
  | { readonly kind: 'keep'; readonly delayMs: number; readonly outage: string | undefined }
  | { readonly kind: 'again'; readonly delayMs: number };

/** It did not run, though its turn had come: a drain gives it back, a lost connection lets it sleep, a pause keeps it. */
export const NOT_NOW: Disposition = { kind: 'keep', delayMs: 0, outage: undefined };

const SETTLED: Disposition = { kind: 'settled' };
const HELD: Disposition = { kind: 'held' };
const RETURNS: Disposition = { kind: 'returns' };
const GIVEN_BACK: Disposition = { kind: 'left', fatal: undefined };

/** Between repeats of a settlement's call: quick at first, because most failures are a reconnect. */
const REPEAT_BACKOFF = exponentialBackoff({ minMs: 1_000, maxMs: 60_000 });
/** For a dead letter the broker refuses: it needs a person, so asking often only fills the log. */
const REFUSED_BACKOFF = exponentialBackoff({ minMs: 10_000, maxMs: 600_000 });

export interface SettlerOptions {
  readonly plan: HandlerPlan;
  readonly subscription: Subscription;
  readonly registry: DeliveryRegistry;
  readonly orderedNegativeAcks: OrderedNegativeAcks;
  readonly followUps: FollowUps;
  /** Undefined for a handler without transactions. */
  readonly transactions: TransactionalSettlement | undefined;
  readonly deadLetters: DeadLetterPublisher;
  readonly retryLetters: RetryLetterPublisher;
  readonly calls: PortCalls;
  readonly reporter: SettlementReporter;
  readonly telemetry: TelemetryHost;
  readonly clock: Clock;
  readonly random: () => number;
  /** Whether as many deliveries wait here as may. */
  readonly heldFull: () => boolean;
}

export class Settler {
  readonly #options: SettlerOptions;
  readonly #copies: CopyAcknowledgements;

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#copies = new CopyAcknowledgements(options);
  }

  /** Settles a run that ended with `outcome`. Never rejects. @param run the record's last one, or the one an earlier settlement was of */
  settle(
    record: DeliveryRecord,
    outcome: Outcome,
    run: Pick<PendingSettlement, 'startedMs' | 'observer'> = record,
  ): Promise<Disposition> {
    const settlement = this.#decide(record, outcome);
    const pending = newSettlement(outcome, settlement, run);
    // What most deliveries are, without a step in between.
    const plain = settlement.kind === 'acknowledge' && settlement.messages.length === 0;
    return plain ? this.#acknowledge(record, pending) : this.#perform(record, pending);
  }

  /** Goes on with a settlement whose call failed. Never rejects. */
  resume(record: DeliveryRecord): Promise<Disposition> {
    const { pending } = record;
    return pending === undefined ? Promise.resolve(GIVEN_BACK) : this.#perform(record, pending);
  }

  /** A person gives up what waited for that decision: what `deadLetter` says happens now. Never rejects. */
  giveUp(record: DeliveryRecord, { outcome, history, ...why }: GivenUp): Promise<Disposition> {
    const { plan, clock } = this.#options;
    record.givenUp = undefined;
    record.history = history;
    const settlement = settlementOfGivenUp(why, plan.deadLetter);
    const decided = { startedMs: clock.now(), observer: undefined, byPerson: true } as const;
    return this.#perform(record, newSettlement(outcome, settlement, decided));
  }

  /** Publishes what waits here as a retry letter, so that its wait outlives this process. What fails goes back as it is. */
  async republish(record: DeliveryRecord): Promise<void> {
    const { clock, registry } = this.#options;
    const delayMs = record.dueMs - clock.now();
    const outcome = defer(delayMs, 'the runtime drains');
    const facts = { strategy: 'republish', delayMs, spendsAttempt: false, outage: undefined } as const;
    const settlement = { kind: 'redeliver', ...facts, failure: outcome.failure } as const;
    const pending = newSettlement(outcome, settlement, { startedMs: clock.now(), observer: undefined });
    const disposition = await this.#republish(record, pending, settlement);
    if (disposition.kind !== 'republished') registry.giveBack(record);
  }

  /** A copy of a message that was acknowledged a moment ago. */
  acknowledgeAgain(id: MessageId): void {
    this.#copies.add(id);
  }

  /** What it was to do again is not done any more: it is back at the broker. */
  close(): void {
    this.#copies.close();
  }

  #decide(record: DeliveryRecord, outcome: Outcome): Settlement {
    const { plan, clock, random, reporter, orderedNegativeAcks } = this.#options;
    const { policy, ordering, spec } = plan;
    const facts: SettlementFacts = {
      attempt: record.attempt,
      policy,
      type: spec.type,
      ordering,
      comesAgain: !isPlaceless(record.message.id),
      // Asked of what failed only: most deliveries do not.
      get brokerKeepsOrder() {
        return plan.brokerMayKeepOrder && orderedNegativeAcks.covers(record.message);
      },
      republishes: plan.retry !== undefined && !record.republishRefused,
      heldFull: this.#options.heldFull(),
      deadLetter: plan.deadLetter,
      keyBlocks: blocksKey(plan, record.message),
      now: clock.now(),
      random,
    };
    try {
      return settlementFor(outcome, facts);
    } catch (error) {
      reporter.policyFailed(record, toError(error));
      const sound = { ...policy, backoff: DEFAULT_REDELIVERY_POLICY.backoff };
      return settlementFor(withoutBackoff(outcome), { ...facts, policy: sound });
    }
  }

  async #perform(record: DeliveryRecord, pending: PendingSettlement): Promise<Disposition> {
    const { settlement } = pending;
    switch (settlement.kind) {
      case 'acknowledge':
        if (settlement.messages.length > 0) {
          const { transactions } = this.#options;
          if (transactions !== undefined)
            return this.#transacted(record, pending, await transactions.perform(record, settlement.messages, pending));
          const failure = await this.#options.followUps.publish(record, settlement.messages, pending);
          if (failure !== undefined) return this.#followUpFailed(record, pending, failure);
        }
        return this.#acknowledge(record, pending);
      case 'dead-letter':
        return this.#deadLetter(record, pending, settlement);
      case 'redeliver':
        if (settlement.strategy === 'republish') return this.#republish(record, pending, settlement);
        return this.#redeliver(record, pending, settlement);
      case 'skip':
        return this.#acknowledge(record, pending);
      case 'block':
        return this.#block(record, pending, settlement);
      case 'leave':
        this.#options.reporter.settled(record, pending);
        this.#options.registry.giveBack(record);
        return { kind: 'left', fatal: settlement.failure.error ?? new Error(settlement.failure.reason) };
    }
  }

  /** The last step of every settlement that ends a message's life. */
  async #acknowledge(record: DeliveryRecord, pending: PendingSettlement): Promise<Disposition> {
    const { calls, subscription, registry, reporter, telemetry, orderedNegativeAcks } = this.#options;
    const { id } = record.message;
    orderedNegativeAcks.acknowledging(id);
    const observed = telemetry.startAcknowledge(pending.observer);
    try {
      await calls.run('acknowledging', () => subscription.acknowledge([id]));
    } catch (error) {
      telemetry.failed(observed, toError(error));
      return this.#again(record, pending, 'acknowledging', toError(error), REPEAT_BACKOFF);
    }
    telemetry.done(observed);
    registry.settled(record);
    reporter.settled(record, pending);
    return SETTLED;
  }

  /** Messages and acknowledgement were to be in one transaction, all of it or nothing. */
  #transacted(
    record: DeliveryRecord,
    pending: PendingSettlement,
    end: TransactionEnd,
  ): Promise<Disposition> | Disposition {
    const { registry, reporter, telemetry } = this.#options;
    switch (end.kind) {
      case 'committed':
        registry.settled(record);
        reporter.settled(record, pending);
        return SETTLED;
      case 'not-published':
        return this.#followUpFailed(record, pending, end.failure);
      case 'again':
        return this.#again(record, pending, end.call, end.error, REPEAT_BACKOFF);
      case 'comes-again':
        reporter.settlementFailed(record, pending, end.call, end.error, undefined);
        telemetry.dropped(pending.observer);
        record.pending = undefined;
        return end.isHere ? NOT_NOW : RETURNS;
    }
  }

  async #deadLetter(
    record: DeliveryRecord,
    pending: PendingSettlement,
    settlement: DeadLetterSettlement,
  ): Promise<Disposition> {
    const failure = await this.#options.deadLetters.publish(record, settlement, pending);
    if (failure === undefined) return this.#acknowledge(record, pending);
    pending.refused = failure.kind === 'refused';
    const backoff = pending.refused ? REFUSED_BACKOFF : REPEAT_BACKOFF;
    return this.#again(record, pending, 'publishing the dead letter', failure.error, backoff);
  }

  /** It waits for a person: not acknowledged, not run again, its key blocked under `ordering`. */
  #block(record: DeliveryRecord, pending: PendingSettlement, settlement: GiveUp): Disposition {
    const { plan, reporter, clock, orderedNegativeAcks } = this.#options;
    reporter.settled(record, pending);
    // What the broker keeps back need not wait here, where a key could fill up.
    if (plan.keyBlocks) orderedNegativeAcks.failed(record);
    const { cause, failure } = settlement;
    record.givenUp = { cause, failure, outcome: pending.outcome, history: record.history };
    record.history = afterFailure(record.history, record.attempt, clock.now());
    record.pending = undefined;
    return { kind: 'keep', delayMs: Infinity, outage: undefined };
  }

  /** Ends this copy's life: the next delivery is that of the letter. */
  async #republish(record: DeliveryRecord, pending: PendingSettlement, settlement: Redeliver): Promise<Disposition> {
    const { retryLetters, reporter } = this.#options;
    const failure = await retryLetters.publish(record, settlement, pending);
    if (failure === undefined) {
      const attempts = settlement.spendsAttempt ? record.attempt : record.attempt - 1;
      const disposition = await this.#acknowledge(record, pending);
      return disposition.kind === 'settled' ? { kind: 'republished', attempts } : disposition;
    }
    if (failure.kind === 'passing')
      return this.#again(record, pending, 'publishing the retry letter', failure.error, REPEAT_BACKOFF);
    reporter.callFailed('publishing the retry letter', record.message.id, failure.error, undefined);
    record.republishRefused = true;
    const strategy = settlement.spendsAttempt && !isPlaceless(record.message.id) ? 'hold' : 'local';
    return this.#redeliver(record, pending, { ...settlement, strategy });
  }

  #redeliver(record: DeliveryRecord, pending: PendingSettlement, settlement: Redeliver): Disposition {
    const { registry, clock, reporter, orderedNegativeAcks } = this.#options;
    // Nothing ends a row of waits that spend no attempt: without any time between them it would spin.
    const leastMs = settlement.spendsAttempt ? settlement.delayMs : Math.max(settlement.delayMs, 1);
    const delayMs = settlement.outage === undefined ? leastMs : probeDelayMs(leastMs, record.probes);
    reporter.settled(record, { ...pending, settlement: { ...settlement, delayMs } });
    if (settlement.spendsAttempt) record.history = afterFailure(record.history, record.attempt, clock.now());
    record.probes = settlement.outage === undefined ? 0 : record.probes + 1;
    record.pending = undefined;
    record.dueMs = clock.now() + delayMs;
    if (settlement.strategy === 'local') {
      const { outage } = settlement;
      // Of a key alone the lane waits behind this delivery anyway.
      return { kind: 'keep', delayMs, outage: outage?.scope === 'subscription' ? outage.dependency : undefined };
    }
    orderedNegativeAcks.failed(record);
    registry.hold(record, record.dueMs);
    return HELD;
  }

  /** A follow-up that can never be sent, or a plugin that threw, is a failed run; anything else is tried again. */
  #followUpFailed(
    record: DeliveryRecord,
    pending: PendingSettlement,
    failure: PublishFailure,
  ): Promise<Disposition> | Disposition {
    if (failure.kind === 'passing') return this.#again(record, pending, 'publishing', failure.error, REPEAT_BACKOFF);
    const outcome = failure.kind === 'refused' ? publishRefused(failure.error) : retry(failure.error);
    return this.settle(record, outcome, pending);
  }

  /** Keeps what was reached. A subscription that is closed has given the message back already. */
  #again(
    record: DeliveryRecord,
    pending: PendingSettlement,
    call: string,
    error: Error,
    backoff: typeof REPEAT_BACKOFF,
  ): Disposition {
    const { registry, reporter, telemetry, random, calls } = this.#options;
    if (calls.closed || (call === 'acknowledging' && isClosed(error))) {
      telemetry.dropped(pending.observer);
      registry.giveBack(record);
      return GIVEN_BACK;
    }
    const delayMs = backoff(pending.failures, random);
    pending.failures += 1;
    record.pending = pending;
    reporter.settlementFailed(record, pending, call, error, delayMs);
    return { kind: 'again', delayMs };
  }
}

/** What has no key blocks none: nobody could name it to decide about it. */
function blocksKey({ keyBlocks, ordering }: HandlerPlan, message: ReceivedMessage): boolean {
  return keyBlocks && (ordering === 'partition' || orderKeyOf(message) !== undefined);
}

/** Its own backoff may be what failed. */
function withoutBackoff(outcome: Outcome): Outcome {
  return outcome.kind === 'retry' ? { ...outcome, backoff: undefined } : outcome;
}
