// Takes messages from one subscription and runs them, never more than `concurrency` at a time. What waits to run
// again in place, or to be settled again, waits here outside its slot; what is due runs before anything new.
import { toError } from '../core/errors.js';
import type { ReceivedMessage } from '../core/message.js';
import type { Outcome } from '../core/outcome.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Subscription } from '../ports/transport.js';
import { DeliveryRecord } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { Dispatcher } from './dispatcher.js';
import type { HandlerPlan } from './handler-plan.js';
import { Lanes } from './lanes.js';
import type { Outage } from './outage.js';
import type { Pauses } from './pauses.js';
import type { Disposition, Settler } from './settler.js';

/** After `receive` itself failed: long enough not to spin, short enough to go on soon after a reconnect. */
const RECEIVE_AGAIN_MS = 1_000;

/** A subscription that was full goes on at this share of its limits, so that it does not pause at every message. */
const RESUME_AT = 0.9;
/** After an error that no rule foresees: the message stays, and the log is not flooded. */
const AFTER_FAULT_MS = 60_000;

export interface ConsumerLoopOptions {
  readonly plan: HandlerPlan;
  readonly subscription: Subscription;
  readonly registry: DeliveryRegistry;
  readonly dispatcher: Dispatcher;
  readonly settler: Settler;
  readonly pauses: Pauses;
  readonly outage: Outage;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A handler returned `fatal`. */
  readonly onFatal: (error: Error) => void;
}

export class ConsumerLoop {
  readonly #options: ConsumerLoopOptions;
  readonly #lanes: Lanes;
  /** May run now and wait for a slot; in the order they became ready. */
  readonly #ready: DeliveryRecord[] = [];
  /** Wait here with their payload: to run again, or to be settled again. */
  readonly #kept = new Set<DeliveryRecord>();
  #keptBytes = 0;
  #running = 0;
  /** Settlements being made again, outside any slot. */
  #resuming = 0;
  #receiving = false;
  #connection = 0;
  readonly #receiveEnd = new AbortController();
  #draining = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: ConsumerLoopOptions) {
    this.#options = options;
    this.#lanes = new Lanes(options.plan.ordering);
  }

  /** Runs of the handler going on now. */
  get running(): number {
    return this.#running;
  }

  /** Deliveries kept in place with their payload. */
  get kept(): number {
    return this.#kept.size;
  }

  start(): void {
    this.#options.subscription.onState(({ connection, state }) => {
      if (state === 'lost') this.#connectionLost();
      else this.#connection = connection;
    });
    this.pump();
  }

  /** Starts what may start: due records first, then new messages. Called whenever something changed. */
  pump(): void {
    while (this.#running < this.#options.plan.concurrency && !this.#options.pauses.stopsRuns) {
      const record = this.#nextReady();
      if (record === undefined) break;
      this.#run(record);
    }
    if (this.#mayReceive()) this.#receive();
    if (this.#draining && this.#isQuiet()) this.#onQuiet?.();
  }

  /**
   * Takes no more and gives back what has not started. Resolves when every run has ended and every settlement in
   * progress is made; `end()` no longer waits for those.
   */
  drain(): Promise<void> {
    this.#draining = true;
    this.#receiveEnd.abort();
    const quiet = new Promise<void>((resolve) => (this.#onQuiet = resolve));
    for (const record of [...this.#ready.splice(0), ...this.#lanes.takeWaiting()])
      this.#options.registry.giveBack(record);
    for (const record of [...this.#kept]) if (record.pending === undefined) this.#giveBackKept(record);
    this.pump();
    return quiet;
  }

  /** Gives back what is still kept. Nothing runs or settles after this. */
  end(): void {
    for (const record of [...this.#kept]) this.#giveBackKept(record);
  }

  #receive(): void {
    this.#receiving = true;
    this.#options.subscription.receive(this.#receiveEnd.signal).then(
      (message) => {
        this.#receiving = false;
        // undefined: the subscription was closed, or this loop drains.
        if (message === undefined) return;
        this.#arrived(message);
        this.pump();
      },
      (error: unknown) => this.#receiveFailed(toError(error)),
    );
  }

  #receiveFailed(error: Error): void {
    const { logger, plan, clock } = this.#options;
    logger.warn('receiving failed', { handler: plan.name, againInMs: RECEIVE_AGAIN_MS, error });
    clock.setTimer(RECEIVE_AGAIN_MS, () => {
      this.#receiving = false;
      this.pump();
    });
  }

  #mayReceive(): boolean {
    if (this.#receiving || this.#draining || this.#running >= this.#options.plan.concurrency) return false;
    const { pauses, outage } = this.#options;
    pauses.set('held-full', this.#isFull(pauses.has('held-full') ? RESUME_AT : 1));
    pauses.set('lane-full', this.#lanes.longest >= this.#options.plan.maxLaneMessages);
    return !pauses.any && !outage.open;
  }

  #isFull(share: number): boolean {
    const { plan, registry } = this.#options;
    return registry.heldCount + this.#kept.size >= plan.maxHeld * share || this.#keptBytes >= plan.maxHeldBytes * share;
  }

  #arrived(message: ReceivedMessage): void {
    const { registry, settler } = this.#options;
    if (this.#draining) return; // it came too late to be taken: it goes back when the subscription closes
    const arrival = registry.admit(message);
    if (arrival instanceof DeliveryRecord) this.#enter(arrival);
    else if (arrival.copyOf === 'acknowledged') void settler.acknowledgeAgain(message.id);
    else if (arrival.copyOf === 'alive' && arrival.record.asleep) this.#due(arrival.record);
  }

  #enter(record: DeliveryRecord): void {
    if (this.#lanes.enter(record)) this.#ready.push(record);
  }

  /** While a dependency is down only its probe runs. */
  #nextReady(): DeliveryRecord | undefined {
    const { outage } = this.#options;
    const at = outage.open ? this.#ready.findIndex((record) => outage.isProbe(record)) : 0;
    if (at < 0) return undefined;
    const [record] = at === 0 ? [this.#ready.shift()] : this.#ready.splice(at, 1);
    return record?.state === 'gone' ? this.#nextReady() : record;
  }

  #run(record: DeliveryRecord): void {
    const { dispatcher, settler, registry, clock } = this.#options;
    this.#running++;
    record.state = 'running';
    const startedMs = clock.now();
    const settle = (outcome: Outcome | undefined): void => {
      if (outcome === undefined) {
        // Interrupted by a drain: no outcome, no attempt spent.
        registry.giveBack(record);
        return this.#ended(record, { kind: 'left', fatal: undefined });
      }
      this.#options.outage.probed(record, outcome);
      void settler
        .settle(record, outcome, startedMs)
        .catch((error: unknown) => this.#fault(error))
        .then((disposition) => this.#ended(record, disposition));
    };
    const outcome = dispatcher.run(record);
    if (outcome instanceof Promise) void outcome.then(settle);
    else settle(outcome);
  }

  /** A bug of ours must cost time, not a message: it is kept and run again. */
  #fault(error: unknown): Disposition {
    const { logger, plan } = this.#options;
    logger.error('settling failed in a way it must not; the message is kept', {
      handler: plan.name,
      error: toError(error),
    });
    return { kind: 'keep', delayMs: AFTER_FAULT_MS, outage: undefined };
  }

  #ended(record: DeliveryRecord, disposition: Disposition): void {
    this.#running--;
    this.#dispose(record, disposition);
    this.pump();
  }

  #dispose(record: DeliveryRecord, disposition: Disposition): void {
    switch (disposition.kind) {
      case 'settled':
      case 'held':
        return this.#leaveLane(record);
      case 'left':
        // Its lane stays blocked: nothing later of its key may pass a message that was not settled.
        if (disposition.fatal !== undefined) this.#options.onFatal(disposition.fatal);
        return;
      case 'keep':
        if (disposition.outage !== undefined) this.#options.outage.down(disposition.outage, record);
        return this.#keep(record, 'kept', disposition.delayMs);
      case 'again':
        return this.#keep(record, 'unsettled', disposition.delayMs);
    }
  }

  #leaveLane(record: DeliveryRecord): void {
    const next = this.#lanes.leave(record);
    if (next !== undefined) this.#ready.push(next);
  }

  #keep(record: DeliveryRecord, state: 'kept' | 'unsettled', delayMs: number): void {
    const { registry, clock } = this.#options;
    record.state = state;
    this.#kept.add(record);
    this.#keptBytes += record.payloadBytes;
    registry.resting(record);
    if (this.#draining && state === 'kept') return this.#giveBackKept(record);
    record.timer = clock.setTimer(delayMs, () => this.#due(record));
  }

  /** Over a lost connection nothing is done for a record until its copy has come: it may be somebody else's by then. */
  #due(record: DeliveryRecord): void {
    record.timer = undefined;
    record.asleep = record.message.connection !== this.#connection;
    if (record.asleep || !this.#kept.delete(record)) return;
    this.#keptBytes -= record.payloadBytes;
    if (record.state === 'unsettled') return void this.#resume(record);
    record.state = 'waiting';
    this.#ready.unshift(record);
    this.pump();
  }

  async #resume(record: DeliveryRecord): Promise<void> {
    this.#resuming++;
    record.state = 'running';
    const disposition = await this.#options.settler.resume(record).catch((error: unknown) => this.#fault(error));
    this.#resuming--;
    this.#dispose(record, disposition);
    this.pump();
  }

  #giveBackKept(record: DeliveryRecord): void {
    record.timer?.cancel();
    record.timer = undefined;
    this.#kept.delete(record);
    this.#keptBytes -= record.payloadBytes;
    this.#options.registry.giveBack(record);
  }

  /** Everything unsettled comes again over the next connection; what runs may finish, what waits must not start. */
  #connectionLost(): void {
    this.#connection = -1;
    this.#lanes.takeWaiting();
    for (const record of this.#ready.splice(0)) this.#lanes.leave(record);
    this.#options.registry.connectionLost();
  }

  #isQuiet(): boolean {
    if (this.#running > 0 || this.#resuming > 0) return false;
    for (const record of this.#kept) if (record.pending !== undefined) return false;
    return true;
  }
}
