// Takes messages from one subscription and runs them, never more than `maxInFlight` at a time. What waits to run
// again in place, or to be settled again, waits here outside its slot; what is due runs before anything new.
import type { ReceivedMessage } from '../core/message.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Subscription } from '../ports/transport.js';
import { deliverAtMsOf } from './delayed-delivery.js';
import { DeliveryRecord } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { DeliveryRunner } from './delivery-runner.js';
import { withUncounted } from './failure-histories.js';
import type { HandlerPlan } from './handler-plan.js';
import { KeptDeliveries } from './kept-deliveries.js';
import { Lanes } from './lanes.js';
import type { Outage } from './outage.js';
import type { Pauses } from './pauses.js';
import { PlacelessMessages, isPlaceless } from './placeless-messages.js';
import { receiveAgain } from './receive-again.js';
import type { Disposition, Settler } from './settler.js';
import { TopicConnections } from './topic-connections.js';

/** Runs started before input and timers get their turn: a handler that feeds its own topic must not keep them out. */
const RUNS_PER_TURN = 256;
/** A subscription that was full goes on at this share of its limits, so that it does not pause at every message. */
const RESUME_AT = 0.9;
/** In a drain, a wait that ends sooner is not worth a message: it starts again when the subscription is open again. */
const PUT_OFF_MS = 10_000;

export interface ConsumerLoopOptions {
  readonly plan: HandlerPlan;
  readonly subscription: Subscription;
  readonly registry: DeliveryRegistry;
  readonly runner: DeliveryRunner;
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
  #ready: DeliveryRecord[] = [];
  readonly #kept: KeptDeliveries;
  #running = 0;
  /** Settlements being made again, outside any slot. */
  #resuming = 0;
  #receiving = false;
  /** Runs started in this turn of the event loop. */
  #runsThisTurn = 0;
  #ended = false;
  readonly #connections = new TopicConnections();
  readonly #placeless: PlacelessMessages;
  readonly #receiveEnd = new AbortController();
  #draining = false;
  /** What is still being settled goes back. */
  #over = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: ConsumerLoopOptions) {
    this.#options = options;
    this.#placeless = new PlacelessMessages(options.clock);
    this.#kept = new KeptDeliveries(options.clock, (record) => this.#due(record));
    this.#lanes = new Lanes(options.plan.ordering, options.plan.maxLaneMessages);
  }

  /** Runs of the handler going on now. */
  get running(): number {
    return this.#running;
  }

  /** Whether the transport ended the subscription by itself: nothing is received any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Deliveries kept in place with their payload. */
  get kept(): number {
    return this.#kept.size;
  }

  /** Keys (or partitions) with messages behind one that is not settled. */
  get blockedKeys(): number {
    return this.#lanes.blocked;
  }

  /** Deliveries that were given up and wait for a person. */
  get blocked(): number {
    return this.#kept.blocked;
  }

  /** Full names of the topics that are connected now. */
  get topics(): readonly string[] {
    return this.#connections.attached;
  }

  /** Whether the connection that a message came over is still there. */
  isConnected(message: ReceivedMessage): boolean {
    return this.#connections.has(message);
  }

  /** Whether a run that had to wait may start now. */
  mayStart(record: DeliveryRecord): boolean {
    return !this.#draining && this.mayJoinBatch(record);
  }

  /** Whether a delivery may be in the batch that starts now; in a drain batches start with what they have. */
  mayJoinBatch(record: DeliveryRecord): boolean {
    const { pauses, outage } = this.#options;
    const waitsForProbe = outage.open && !outage.isProbe(record);
    return !pauses.stopsRuns && !waitsForProbe && this.isConnected(record.message);
  }

  /** Whether as many deliveries wait here as may. */
  get full(): boolean {
    return this.#options.registry.heldCount + this.#kept.size >= this.#options.plan.maxHeld;
  }

  start(): void {
    this.#options.subscription.onState(({ topic, connection, state }) => {
      // To a standby nothing is delivered: what it holds is sent to the consumer that is active now.
      if (state === 'lost' || state === 'standby') this.#connectionLost(topic);
      else this.#connections.set(topic, connection);
    });
    this.pump();
  }

  /** Starts what may start: due records first, then new messages. Called whenever something changed. */
  pump(): void {
    const { outage, pauses } = this.#options;
    while (this.#running < outage.maxInFlight && !pauses.stopsRuns) {
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
    for (const record of [...this.#ready.splice(0), ...this.#lanes.removeWaiting(() => true)])
      this.#options.registry.giveBack(record);
    for (const record of this.#kept.take(({ pending }) => pending === undefined)) void this.#putOff(record);
    this.pump();
    return quiet;
  }

  /** Gives back what is still kept. Nothing runs or settles after this. */
  end(): void {
    this.#over = true;
    for (const record of this.#kept.take(() => true)) this.#giveBack(record);
  }

  #giveBack(record: DeliveryRecord): void {
    this.#options.runner.letGo(record);
    this.#options.registry.giveBack(record);
  }

  /** It may be somebody else's by now: nothing is done for it before its copy has come. */
  #sleep(record: DeliveryRecord): void {
    this.#options.runner.letGo(record);
    this.#options.registry.sleep(record);
    this.#options.outage.end(record);
    this.#leaveLane(record);
  }

  /** Its wait goes on at the broker where it is long enough and allowed; else it goes back, and comes again at once. */
  async #putOff(record: DeliveryRecord): Promise<void> {
    const { settler, registry, plan, clock } = this.#options;
    const waitsMs = record.dueMs - clock.now();
    if (plan.retry === undefined || waitsMs <= PUT_OFF_MS || waitsMs === Infinity) {
      registry.giveBack(record);
      return;
    }
    this.#resuming++;
    record.begin(clock.now());
    await settler.republish(record).catch(() => registry.giveBack(record));
    this.#resuming--;
    this.pump();
  }

  #receive(): void {
    this.#receiving = true;
    if (this.#runsThisTurn < RUNS_PER_TURN) return this.#receiveNow();
    this.#options.clock.nextTurn(() => {
      this.#runsThisTurn = 0;
      this.#receiveNow();
    });
  }

  #receiveNow(): void {
    const { subscription, plan, clock, logger } = this.#options;
    const { signal } = this.#receiveEnd;
    subscription.receive(signal).then(
      (message) => this.#received(message),
      async (error: unknown) =>
        this.#received(await receiveAgain(error, { subscription, signal, handler: plan.name, clock, logger })),
    );
  }

  #received(message: ReceivedMessage | undefined): void {
    this.#receiving = false;
    if (message === undefined) return this.#noMore();
    this.#arrived(message);
    this.pump();
  }

  /** Expected when this loop drains; else the transport closed the subscription, which nobody may overlook. */
  #noMore(): void {
    if (this.#draining) return;
    this.#ended = true;
    const { logger, plan } = this.#options;
    logger.error('the subscription ended by itself; nothing more is received', { handler: plan.name });
  }

  #mayReceive(): boolean {
    const { pauses, outage } = this.#options;
    if (this.#receiving || this.#draining || this.#ended || this.#running >= outage.maxInFlight) return false;
    pauses.set('held-full', this.#mustWait(pauses.has('held-full') ? RESUME_AT : 1));
    pauses.set('lane-full', this.#lanes.full);
    return !pauses.any;
  }

  /** Whether nothing new may come before something that waits has gone. What can be published again does not wait here. */
  #mustWait(share: number): boolean {
    const { plan, registry } = this.#options;
    // Held beyond the limit is what could not be published again.
    const published = plan.retry !== undefined && !plan.delaysInClient;
    const held = published ? Math.max(0, registry.heldCount - plan.maxHeld) : registry.heldCount;
    const waiting = held + this.#kept.size;
    const bytes = this.#kept.bytes + this.#lanes.waitingBytes;
    return waiting >= plan.maxHeld * share || bytes >= plan.maxHeldBytes * share;
  }

  #arrived(message: ReceivedMessage): void {
    const { registry, settler } = this.#options;
    if (this.#draining) return; // it came too late to be taken: it goes back when the subscription closes
    if (this.#connections.isOutdated(message)) return;
    const arrival = registry.admit(this.#placeless.placed(message));
    if (arrival instanceof DeliveryRecord) {
      if (!this.#isTooEarly(arrival)) this.#enter(arrival);
    } else if (arrival.copyOf === 'acknowledged') void settler.acknowledgeAgain(message.id);
  }

  /**
   * A message that is not to be delivered yet, where the broker does not see to that (Y-20): only its id waits where it can
   * be asked back alone, elsewhere it is kept in place.
   */
  #isTooEarly(record: DeliveryRecord): boolean {
    const { plan, registry, clock } = this.#options;
    const { id, letter } = record.message;
    const alone = letter !== undefined && isPlaceless(id);
    const dueMs = plan.delaysInClient || alone ? deliverAtMsOf(record.message) : 0;
    if (dueMs <= clock.now()) {
      // Another process may have asked it back when it was due: of the counts that could be right the smaller is taken.
      if (dueMs > 0 && record.history.uncounted === 0) record.history = withUncounted(record.history);
      return false;
    }
    record.dueMs = Math.max(record.dueMs, dueMs);
    const byId = redeliversSingly(plan.spec.type) && plan.ordering === 'none';
    if (!byId || letter !== undefined) return false;
    registry.defer(record, record.dueMs);
    return true;
  }

  #enter(record: DeliveryRecord): void {
    if (this.#lanes.enter(record)) this.#proceed(record);
  }

  /** Its lane is its own: it runs, or goes on waiting where it slept through a lost connection. */
  #proceed(record: DeliveryRecord): void {
    if (record.pending !== undefined) this.#keep(record, 'unsettled');
    else if (record.dueMs > this.#options.clock.now()) this.#keep(record, 'kept');
    else this.#ready.push(record);
  }

  /** While a dependency is down only its probe runs. */
  #nextReady(): DeliveryRecord | undefined {
    const { outage } = this.#options;
    const at = outage.open ? this.#ready.findIndex((record) => outage.isProbe(record)) : 0;
    if (at < 0) return undefined;
    const [record] = at === 0 ? [this.#ready.shift()] : this.#ready.splice(at, 1);
    return record;
  }

  #run(record: DeliveryRecord): void {
    this.#running++;
    this.#runsThisTurn++;
    void this.#options.runner.run(record).then((disposition) => this.#runEnded(record, disposition));
  }

  #runEnded(record: DeliveryRecord, disposition: Disposition): void {
    this.#running--;
    this.#dispose(record, disposition);
    this.pump();
  }

  #dispose(record: DeliveryRecord, disposition: Disposition): void {
    switch (disposition.kind) {
      case 'settled':
      case 'held':
      case 'republished':
        return this.#leaveLane(record);
      case 'left':
        // Its lane stays blocked: nothing later of its key may pass a message that was not settled.
        if (disposition.fatal !== undefined) this.#options.onFatal(disposition.fatal);
        return;
      case 'keep':
        record.dueMs = this.#options.clock.now() + disposition.delayMs;
        this.#keep(record, 'kept');
        if (disposition.outage === undefined) return;
        return this.#options.outage.found(disposition.outage, record);
      case 'again':
        record.dueMs = this.#options.clock.now() + disposition.delayMs;
        return this.#keep(record, 'unsettled');
    }
  }

  #leaveLane(record: DeliveryRecord): void {
    const next = this.#lanes.leave(record);
    if (next !== undefined) this.#proceed(next);
  }

  /** Until its `dueMs`; in a drain what is to run again goes back instead. */
  #keep(record: DeliveryRecord, state: 'kept' | 'unsettled'): void {
    if (this.#over || (this.#draining && state === 'kept')) return this.#giveBack(record);
    if (!this.isConnected(record.message)) return this.#sleep(record);
    this.#kept.add(record, state);
    this.#options.registry.resting(record);
  }

  #due(record: DeliveryRecord): void {
    if (record.state === 'unsettled') return void this.#resume(record);
    record.state = 'waiting';
    this.#ready.push(record);
    this.pump();
  }

  async #resume(record: DeliveryRecord): Promise<void> {
    this.#resuming++;
    const disposition = await this.#options.runner.resume(record);
    this.#resuming--;
    this.#dispose(record, disposition);
    this.pump();
  }

  /**
   * Everything unsettled of the topic comes again, here or elsewhere. What runs may finish; what waits must not start,
   * and what is kept sleeps until its copy comes.
   */
  #connectionLost(topic: string): void {
    if (!this.#connections.lose(topic)) return;
    const { registry, outage } = this.#options;
    const isOfTopic = ({ message }: DeliveryRecord): boolean => message.id.topic === topic;
    this.#lanes.removeWaiting(isOfTopic);
    for (const record of this.#ready.filter(isOfTopic)) {
      // What waits behind it may have come over another connection.
      this.#leaveLane(record);
      outage.end(record);
    }
    this.#ready = this.#ready.filter((record) => !isOfTopic(record));
    for (const record of this.#kept.take(isOfTopic)) this.#sleep(record);
    registry.connectionLost(topic);
    this.pump();
  }

  #isQuiet(): boolean {
    return this.#running === 0 && this.#resuming === 0 && !this.#kept.unsettled;
  }
}
