// Takes messages from one subscription and runs them, never more than `maxInFlight` at a time. What waits to run
// again in place, or to be settled again, waits here outside its slot; what is due runs before anything new.
import type { MessageKey, ReceivedMessage } from '../core/message.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Subscription } from '../ports/transport.js';
import { BlockedKeys } from './blocked-keys.js';
import { deliverAtMsOf } from './delayed-delivery.js';
import type { DeliveryPause } from './delivery-pause.js';
import { DeliveryRecord } from './delivery-record.js';
import type { DeliveryRegistry } from './delivery-registry.js';
import type { DeliveryRunner } from './delivery-runner.js';
import { withUncounted } from './failure-histories.js';
import type { HandlerPlan } from './handler-plan.js';
import { HoldingLimits } from './holding-limits.js';
import type { KeptState } from './kept-deliveries.js';
import { KeptDeliveries } from './kept-deliveries.js';
import { Lanes } from './lanes.js';
import { MessageIntake } from './message-intake.js';
import { MixedEntries } from './mixed-entries.js';
import type { OrderedNegativeAcks } from './ordered-negative-acks.js';
import type { Outage } from './outage.js';
import type { Pauses } from './pauses.js';
import { PlacelessMessages, isPlaceless } from './placeless-messages.js';
import { ReadyDeliveries } from './ready-deliveries.js';
import type { Disposition, Settler } from './settler.js';
import { NOT_NOW } from './settler.js';
import { TopicConnections } from './topic-connections.js';

/** In a drain, a wait that ends sooner is not worth a message: it starts again when the subscription is open again. */
const PUT_OFF_MS = 10_000;
/** How long the copy of what was in a transaction is awaited, once the broker must have ended that by itself. */
const RETURN_MS = 30_000;

export interface ConsumerLoopOptions {
  readonly plan: HandlerPlan;
  readonly subscription: Subscription;
  readonly registry: DeliveryRegistry;
  readonly orderedNegativeAcks: OrderedNegativeAcks;
  readonly runner: DeliveryRunner;
  readonly settler: Settler;
  readonly pauses: Pauses;
  readonly outage: Outage;
  readonly deliveryPause: DeliveryPause;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A handler returned `fatal`. */
  readonly onFatal: (error: Error) => void;
}

export class ConsumerLoop {
  readonly #options: ConsumerLoopOptions;
  readonly #lanes: Lanes;
  readonly #ready: ReadyDeliveries;
  readonly #kept: KeptDeliveries;
  /** How much may wait here, and does. */
  readonly limits: HoldingLimits;
  /** Keys that wait for a person. */
  readonly blockedKeys: BlockedKeys;
  #running = 0;
  /** Settlements being made again, outside any slot. */
  #resuming = 0;
  readonly #intake: MessageIntake;
  /** Where its topics are connected. */
  readonly connections = new TopicConnections();
  readonly #placeless: PlacelessMessages;
  /** Only where order per key is asked for. */
  readonly #mixedEntries: MixedEntries | undefined;
  #draining = false;
  /** What is still being settled goes back. */
  #over = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: ConsumerLoopOptions) {
    this.#options = options;
    this.#intake = new MessageIntake({
      ...options,
      handler: options.plan.name,
      onMessage: (message) => {
        this.#arrived(message);
        this.pump();
      },
    });
    this.#placeless = new PlacelessMessages(options.clock);
    const { name, ordering } = options.plan;
    this.#mixedEntries = ordering === 'key' ? new MixedEntries(name, options.logger) : undefined;
    this.#kept = new KeptDeliveries(options.clock, (record) => this.#due(record));
    this.#ready = new ReadyDeliveries({ ...options, onTime: () => this.pump() });
    this.#lanes = new Lanes(options.plan.ordering, options.plan.maxLaneMessages);
    this.limits = new HoldingLimits({ ...options, kept: this.#kept, lanes: this.#lanes, ready: this.#ready });
    this.blockedKeys = new BlockedKeys(this.#lanes, this.#kept);
  }

  /** Runs of the handler going on now. */
  get running(): number {
    return this.#running;
  }

  /** Whether the transport ended the subscription by itself: nothing is received any more. */
  get ended(): boolean {
    return this.#intake.ended;
  }

  /** Deliveries kept in place with their payload. */
  get kept(): number {
    return this.#kept.size;
  }

  /** Keys (or partitions) with messages behind one that is not settled. */
  get waitingKeys(): number {
    return this.#lanes.blocked;
  }

  /** Deliveries that were given up and wait for a person. */
  get blocked(): number {
    return this.#kept.givenUp.length;
  }

  /** Takes out what waits behind `record` on its key and topic: it goes back, and nothing more is done for it here. */
  takeBehind(record: DeliveryRecord): readonly DeliveryRecord[] {
    const behind = this.#lanes.takeBehind(record);
    for (const waiting of behind) this.#options.registry.giveBack(waiting);
    return behind;
  }

  /** Whether a run that had to wait may start now. */
  mayStart(record: DeliveryRecord): boolean {
    return !this.#draining && this.mayJoinBatch(record);
  }

  /** Whether a delivery may be in the batch that starts now; in a drain batches start with what they have. */
  mayJoinBatch(record: DeliveryRecord): boolean {
    const { pauses, outage } = this.#options;
    const waitsForProbe = outage.open && !outage.isProbe(record);
    return !pauses.stopsRuns && !waitsForProbe && this.connections.has(record.message);
  }

  start(): void {
    this.#options.subscription.onState(({ topic, connection, state, orderedNegativeAck }) => {
      // To a standby nothing is delivered: what it holds is sent to the consumer that is active now.
      if (state === 'lost' || state === 'standby') this.#connectionLost(topic);
      else this.connections.set({ topic, connection, state, orderedNegativeAck });
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
    if (this.#mayReceive()) this.#intake.receive();
    if (this.#draining && this.#isQuiet()) this.#onQuiet?.();
  }

  /**
   * Takes no more and gives back what has not started. Resolves when every run has ended and every settlement in
   * progress is made; `end()` no longer waits for those.
   */
  drain(): Promise<void> {
    this.#draining = true;
    this.#intake.stop();
    const quiet = new Promise<void>((resolve) => (this.#onQuiet = resolve));
    for (const record of [...this.#ready.remove(() => true), ...this.#lanes.removeWaiting(() => true)])
      this.#options.registry.giveBack(record);
    for (const record of this.#kept.take(({ pending }) => pending === undefined)) void this.#putOff(record);
    this.pump();
    return quiet;
  }

  /** Runs the message that blocks `key` again, with fresh attempts. @returns false when none does */
  release(key: MessageKey): boolean {
    const record = this.blockedKeys.take(key);
    if (record === undefined) return false;
    void this.#resolve(record, async () => {
      await this.#options.runner.forgetAttempts(record);
      return NOT_NOW;
    });
    return true;
  }

  /** Gives the message that blocks `key` up, as `deadLetter` says. @returns false when none does */
  skip(key: MessageKey): boolean {
    const record = this.blockedKeys.take(key);
    if (record?.givenUp === undefined) return false;
    const { givenUp } = record;
    void this.#resolve(record, () => this.#options.runner.giveUp(record, givenUp));
    return true;
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
    if (record.state === 'returning' || plan.retry === undefined || waitsMs <= PUT_OFF_MS || waitsMs === Infinity) {
      registry.giveBack(record);
      return;
    }
    this.#resuming++;
    record.begin(clock.now());
    await settler.republish(record).catch(() => registry.giveBack(record));
    this.#resuming--;
    this.pump();
  }

  #mayReceive(): boolean {
    const { pauses, outage, deliveryPause } = this.#options;
    if (!this.#intake.ready || this.#running >= outage.maxInFlight) return false;
    if (!deliveryPause.mayTake(this.#running + this.#ready.size)) return false;
    pauses.set('held-full', this.limits.mustWait(pauses.has('held-full')));
    pauses.set('lane-full', this.limits.fullKey !== undefined);
    return !pauses.any;
  }

  #arrived(message: ReceivedMessage): void {
    const { registry, settler, orderedNegativeAcks } = this.#options;
    if (this.#draining) return; // it came too late to be taken: it goes back when the subscription closes
    if (this.connections.isOutdated(message)) return;
    this.#mixedEntries?.arrived(message);
    const arrival = registry.admit(this.#placeless.placed(message));
    if (arrival instanceof DeliveryRecord) {
      if (orderedNegativeAcks.sendsBack(message)) registry.giveBack(arrival);
      else if (!this.#isTooEarly(arrival)) this.#enter(arrival);
    } else if (arrival.copyOf === 'acknowledged') settler.acknowledgeAgain(message.id);
    else if (arrival.copyOf === 'alive' && arrival.record.state === 'returning' && !arrival.record.toBeAskedFor)
      this.#returned(arrival.record);
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
    // A broker that it came from anew does not know yet that its key waits.
    if (record.givenUp !== undefined) this.#options.orderedNegativeAcks.failed(record);
    if (record.pending !== undefined) this.#keep(record, 'unsettled');
    else if (record.dueMs > this.#options.clock.now()) this.#keep(record, 'kept');
    else this.#ready.add(record);
  }

  /** While a dependency is down only its probe runs. */
  #nextReady(): DeliveryRecord | undefined {
    const { outage } = this.#options;
    return outage.open ? this.#ready.takeFirst((record) => outage.isProbe(record)) : this.#ready.take();
  }

  #run(record: DeliveryRecord): void {
    this.#running++;
    void this.#options.runner.run(record).then((disposition) => this.#runEnded(record, disposition));
  }

  #runEnded(record: DeliveryRecord, disposition: Disposition): void {
    this.#running--;
    this.#ready.ended(record);
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
      case 'returns':
        record.dueMs = this.#options.clock.now() + (this.#options.plan.transactional?.timeoutMs ?? 0) + RETURN_MS;
        return this.#keep(record, 'returning');
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
  #keep(record: DeliveryRecord, state: KeptState): void {
    record.state = state;
    if (this.#over || (this.#draining && state !== 'unsettled')) return this.#giveBack(record);
    if (!record.outlivesConnection && !this.connections.has(record.message)) return this.#sleep(record);
    this.#kept.add(record, state);
    this.#options.registry.resting(record);
  }

  #due(record: DeliveryRecord): void {
    if (record.state === 'unsettled') return void this.#resolve(record, () => this.#options.runner.resume(record));
    if (record.state === 'returning') this.#options.registry.hold(record, this.#options.clock.now());
    if (record.state === 'gone') this.#leaveLane(record);
    else this.#startAgain(record);
    this.pump();
  }

  /** The copy is here that was awaited. */
  #returned(record: DeliveryRecord): void {
    this.#kept.take((other) => other === record);
    this.#startAgain(record);
  }

  #startAgain(record: DeliveryRecord): void {
    record.state = 'waiting';
    this.#ready.add(record);
  }

  /** What is done about a record outside any slot. */
  async #resolve(record: DeliveryRecord, work: () => Promise<Disposition>): Promise<void> {
    this.#resuming++;
    const disposition = await work();
    this.#resuming--;
    this.#dispose(record, disposition);
    this.pump();
  }

  /**
   * Everything unsettled of the topic comes again, here or elsewhere. What runs may finish; what waits must not start,
   * and what is kept sleeps until its copy comes.
   */
  #connectionLost(topic: string): void {
    if (!this.connections.lose(topic)) return;
    const { registry, outage, orderedNegativeAcks } = this.#options;
    orderedNegativeAcks.connectionLost(topic);
    const isOfTopic = ({ message }: DeliveryRecord): boolean => message.id.topic === topic;
    this.#lanes.removeWaiting(isOfTopic);
    for (const record of this.#ready.remove(isOfTopic)) {
      // What waits behind it may have come over another connection.
      this.#leaveLane(record);
      outage.end(record);
    }
    const sleeps = (record: DeliveryRecord): boolean => isOfTopic(record) && !record.outlivesConnection;
    for (const record of this.#kept.take(sleeps)) this.#sleep(record);
    registry.connectionLost(topic);
    this.pump();
  }

  #isQuiet(): boolean {
    return this.#running === 0 && this.#resuming === 0 && !this.#kept.unsettled;
  }
}
