// Which messages of one subscription are here and in what state: waiting, running, held or just acknowledged.
// It recognises copies of a message, so that each is settled once, and decides when an entry may be asked back.
import { EntryMap } from '../core/entry-map.js';
import type { MessageId } from '../core/message-id.js';
import type { Clock } from '../ports/clock.js';
import { NegativeAckTracker } from '../redelivery/negative-ack-tracker.js';
import { BatchEntry } from './batch-entry.js';
import { DeliveryRecord } from './delivery-record.js';
import { FailureHistories, NO_FAILURES, withUncounted } from './failure-histories.js';
import type { ArrivedMessage } from './joined-subscription.js';
import { LateCopies } from './late-copies.js';
import { RecentlyAcknowledged } from './recently-acknowledged.js';
import type { Sleeper } from './sleepers.js';
import { Sleepers } from './sleepers.js';

/**
 * What an arrival is: a record to run, or a copy. `acknowledged`: acknowledge it again. `held`: its id waits here.
 * `alive`: the record took over the copy; where it was asleep, it can go on now.
 */
export type Arrival =
  | DeliveryRecord
  | { readonly copyOf: 'acknowledged' | 'held' }
  | { readonly copyOf: 'alive'; readonly record: DeliveryRecord };

const COPY_OF_ACKNOWLEDGED = { copyOf: 'acknowledged' } as const;
const COPY_OF_HELD = { copyOf: 'held' } as const;

/** Partly done batch entries with nothing here are kept to recognise repeats; beyond this the oldest are forgotten. */
const MAX_QUIET_BATCHES = 10_000;

export interface DeliveryRegistryOptions {
  readonly clock: Clock;
  /** How long a copy of an acknowledged message is recognised, milliseconds. */
  readonly duplicateWindowMs: number;
  /** Asks the broker for redelivery of these entries. */
  readonly redeliver: (ids: readonly MessageId[]) => Promise<void>;
  /** Whether the connection that a message came over is still there. @default it always is */
  readonly isConnected?: ((message: ArrivedMessage) => boolean) | undefined;
  /** False where other processes may ask back what has not failed (ack timeout, transactions): brokers count that too. @default true */
  readonly brokerCounts?: boolean | undefined;
  /**
   * A message that waited as an id when its connection was lost has come again: whether it may go on waiting so. Else it
   * waits with its payload. @default it may
   */
  readonly holdsAgain?: ((message: ArrivedMessage) => boolean) | undefined;
  /** Fewer ids are held than before: there may be room again. */
  readonly onReleased: () => void;
  /** A request for redelivery failed; it is made again. */
  readonly onRequestFailed: (error: Error, ids: readonly MessageId[]) => void;
}

export class DeliveryRegistry {
  readonly histories = new FailureHistories();
  readonly #clock: Clock;
  readonly #brokerCounts: boolean;
  readonly #isConnected: (message: ArrivedMessage) => boolean;
  readonly #holdsAgain: (message: ArrivedMessage) => boolean;
  readonly #acknowledged: RecentlyAcknowledged;
  readonly #tracker: NegativeAckTracker;
  /** Singles by their record, batches by their entry. */
  readonly #live = new EntryMap<DeliveryRecord | BatchEntry>();
  /** Batch entries none of whose messages is here; the oldest first. */
  readonly #quietBatches = new Set<BatchEntry>();
  readonly #sleepers = new Sleepers();
  readonly #lateCopies = new LateCopies();

  constructor(options: DeliveryRegistryOptions) {
    this.#clock = options.clock;
    this.#brokerCounts = options.brokerCounts ?? true;
    this.#isConnected = options.isConnected ?? (() => true);
    this.#holdsAgain = options.holdsAgain ?? (() => true);
    this.#acknowledged = new RecentlyAcknowledged(options.duplicateWindowMs);
    this.#tracker = new NegativeAckTracker({
      clock: options.clock,
      redeliver: (ids) => {
        const ready = ids.filter((id) => this.#mayAskBack(id));
        for (const id of ready) this.#isAskedFor(id);
        return ready.length === 0 ? Promise.resolve() : options.redeliver(ready);
      },
      onReleased: options.onReleased,
      onRequestFailed: options.onRequestFailed,
    });
  }

  /** Entries whose id waits here to be asked back. */
  get heldCount(): number {
    return this.#tracker.size;
  }

  /** When the oldest run going on now started, epoch milliseconds; undefined when none does. */
  get oldestRunMs(): number | undefined {
    let oldestMs = Infinity;
    for (const record of this.#records())
      if (record.state === 'running') oldestMs = Math.min(oldestMs, record.startedMs);
    return oldestMs === Infinity ? undefined : oldestMs;
  }

  /**
   * Of what is here or waits here to be asked back: when the message that has been failing longest failed first, or its
   * run started where only its settlement fails. Epoch milliseconds; undefined when none does.
   */
  get oldestFailureMs(): number | undefined {
    let oldestMs = Infinity;
    for (const { history, pending } of this.#records())
      oldestMs = Math.min(oldestMs, history.firstFailureMs ?? pending?.startedMs ?? Infinity);
    for (const id of this.#heldMessages())
      oldestMs = Math.min(oldestMs, this.histories.get(id).firstFailureMs ?? Infinity);
    return oldestMs === Infinity ? undefined : oldestMs;
  }

  admit(message: ArrivedMessage): Arrival {
    const known = this.#live.get(message.id);
    if (known === undefined) return this.#admitUnknown(message);
    if (known instanceof BatchEntry) return this.#admitToBatch(known, message);
    return adopt(known, message);
  }

  /** Whether the message is here, or waits here to be asked back: it is not done with. */
  isUnsettled(id: MessageId): boolean {
    const known = this.#live.get(id);
    if (known instanceof BatchEntry) return known.records.has(id.batchIndex) || known.holds.has(id.batchIndex);
    return known !== undefined || this.#tracker.isPending(id);
  }

  /** The message is acknowledged: a copy of it is recognised for a while. */
  settled(record: DeliveryRecord): void {
    const { id } = record.message;
    record.state = 'gone';
    this.histories.forget(id);
    const known = this.#live.get(id);
    if (known instanceof BatchEntry) {
      known.records.delete(id.batchIndex);
      known.holds.delete(id.batchIndex);
      known.done.add(id.batchIndex);
      if (!known.complete) return this.#afterRun(known);
      this.#quietBatches.delete(known);
    }
    this.#live.delete(id);
    this.#acknowledged.add(id, this.#clock.now());
    this.#lateCopies.ended(id);
  }

  /** Lets the payload go; only the id waits until `dueMs`, then the broker is asked for it. */
  hold(record: DeliveryRecord, dueMs: number): void {
    const { id } = record.message;
    // What was pending in a transaction when its connection was lost did not come over the next one.
    const isAsked = record.state === 'returning' || this.#isConnected(record.message);
    record.state = 'gone';
    this.histories.remember(id, record.history);
    const known = this.#live.get(id);
    if (known instanceof BatchEntry) {
      known.records.delete(id.batchIndex);
      known.holds.set(id.batchIndex, dueMs);
    } else {
      this.#live.delete(id);
    }
    // Over a connection that is gone nothing can be asked: the broker sends it again, and that copy waits on.
    if (isAsked) this.#tracker.add(id, dueMs);
    else if (!(known instanceof BatchEntry)) this.#sleepers.add(id, { dueMs, kept: undefined });
    if (known instanceof BatchEntry) this.#afterRun(known);
  }

  /** The broker is asked for what runs here although nothing failed: it counts that, the attempt must not. */
  askedBack(id: MessageId): void {
    const known = this.#live.get(id);
    this.#lateCopies.expect(id, known === undefined && this.#acknowledged.has(id, this.#clock.now()));
    if (known instanceof BatchEntry) return; // Of a batch the broker's count is not used.
    if (known !== undefined) known.history = withUncounted(known.history);
  }

  /**
   * The broker is asked for what stays here until its copy has come, over whatever connection there is: what was pending
   * there when a new one was opened did not come over it.
   */
  askFor(record: DeliveryRecord): void {
    record.toBeAskedFor = true;
    this.#tracker.add(record.message.id, this.#clock.now());
  }

  /** Nothing failed, it is only too early: its id waits, and the redelivery that follows does not count (Y-22). */
  defer(record: DeliveryRecord, dueMs: number): void {
    record.history = withUncounted(record.history);
    this.hold(record, dueMs);
  }

  /** The record stays here, but nothing of it runs now: a batch that is due may be asked back. */
  resting(record: DeliveryRecord): void {
    const known = this.#live.get(record.message.id);
    if (known instanceof BatchEntry) this.#afterRun(known);
  }

  /** Nothing more is done for the record here; the broker delivers the message again when the subscription closes. */
  giveBack(record: DeliveryRecord): void {
    const { id } = record.message;
    record.state = 'gone';
    if (record.history !== NO_FAILURES) this.histories.remember(id, record.history);
    const known = this.#live.get(id);
    if (known instanceof BatchEntry) {
      known.records.delete(id.batchIndex);
      this.#afterRun(known);
    } else if (known === record) {
      this.#live.delete(id);
    }
  }

  /** The broker sends everything unsettled of `topic` again: what has not started is dropped, held ids sleep. */
  connectionLost(topic: string): void {
    for (const known of this.#live.values())
      if (known instanceof BatchEntry) known.askWhenQuiet &&= known.id.topic !== topic;
    for (const record of [...this.#records()]) {
      if (record.message.id.topic !== topic) continue;
      record.toBeAskedFor = false;
      if (record.state === 'waiting') this.giveBack(record);
    }
    this.#lateCopies.connectionLost(topic);
    for (const { id, dueMs } of this.#tracker.takeAll(topic)) {
      // Of a batch entry the due times stay in the BatchEntry.
      if (id.batchSize <= 1) this.#sleepers.add(id, { dueMs, kept: undefined });
    }
  }

  /** Kept in place until its connection was lost: the payload goes, what is due for it stays. */
  sleep(record: DeliveryRecord): void {
    const { history, probes, pending, givenUp, dueMs } = record;
    this.giveBack(record);
    this.#sleepers.add(record.message.id, { dueMs, kept: { history, probes, pending, givenUp } });
  }

  close(): void {
    this.#tracker.close();
    this.#live.clear();
    this.#quietBatches.clear();
    this.#sleepers.clear();
    this.#lateCopies.clear();
    this.#acknowledged.clear();
    this.histories.clear();
  }

  /** Everything that is here with its payload. */
  *#records(): Generator<DeliveryRecord> {
    for (const known of this.#live.values())
      if (known instanceof BatchEntry) yield* known.records.values();
      else yield known;
  }

  /** What waits to be asked back; once it was, it may be anybody's. */
  *#heldMessages(): Generator<MessageId> {
    for (const { id } of this.#tracker.pending()) {
      const known = this.#live.get(id);
      if (known instanceof BatchEntry) for (const batchIndex of known.holds.keys()) yield { ...known.id, batchIndex };
      else yield id;
    }
  }

  #admitUnknown(message: ArrivedMessage): Arrival {
    const { id } = message;
    if (this.#acknowledged.has(id, this.#clock.now()) || this.#lateCopies.has(id)) return COPY_OF_ACKNOWLEDGED;
    this.#answered(id);
    if (this.#tracker.isPending(id)) return COPY_OF_HELD;
    const sleeper = this.#sleepers.wake(id);
    const isStillHeld = sleeper !== undefined && sleeper.kept === undefined && sleeper.dueMs > this.#clock.now();
    if (isStillHeld && this.#holdsAgain(message)) {
      this.#tracker.add(id, sleeper.dueMs);
      return COPY_OF_HELD;
    }
    if (id.batchSize > 1) {
      const batch = new BatchEntry(id);
      this.#live.set(id, batch);
      return this.#newInBatch(batch, message, sleeper);
    }
    const record = this.#newRecord(message, sleeper);
    this.#live.set(id, record);
    return record;
  }

  /** A copy that comes while its redelivery is being asked for is the answer: there is nothing more to ask. */
  #answered(id: MessageId): void {
    if (this.#tracker.size === 0) return;
    const entry = { ...id, batchIndex: -1 };
    if (this.#tracker.has(entry) && !this.#tracker.isPending(entry)) this.#tracker.acknowledge(entry);
  }

  #admitToBatch(batch: BatchEntry, message: ArrivedMessage): Arrival {
    const index = message.id.batchIndex;
    // One that was never here may have lain in the client all the time: it answers nothing.
    if (batch.hasSeen(index)) this.#answered(message.id);
    if (batch.done.has(index)) return COPY_OF_ACKNOWLEDGED;
    const record = batch.records.get(index);
    if (record !== undefined) return adopt(record, message);
    const dueMs = batch.holds.get(index);
    if (dueMs !== undefined && dueMs > this.#clock.now()) {
      this.#tracker.add(message.id, dueMs);
      return COPY_OF_HELD;
    }
    batch.holds.delete(index);
    return this.#newInBatch(batch, message, this.#sleepers.wake(message.id));
  }

  #newRecord(message: ArrivedMessage, sleeper: Sleeper | undefined): DeliveryRecord {
    const record = new DeliveryRecord(message, this.histories.get(message.id), this.#brokerCounts);
    if (sleeper !== undefined) Object.assign(record, sleeper.kept, { dueMs: sleeper.dueMs });
    return record;
  }

  #newInBatch(batch: BatchEntry, message: ArrivedMessage, sleeper: Sleeper | undefined): DeliveryRecord {
    const record = this.#newRecord(message, sleeper);
    batch.records.set(message.id.batchIndex, record);
    this.#quietBatches.delete(batch);
    return record;
  }

  #mayAskBack(id: MessageId): boolean {
    const known = this.#live.get(id);
    if (!(known instanceof BatchEntry) || known.quiet) return true;
    known.askWhenQuiet = true;
    return false;
  }

  /** What comes from now on may be the answer. */
  #isAskedFor(id: MessageId): void {
    const known = this.#live.get(id);
    if (known instanceof BatchEntry) for (const record of known.records.values()) record.toBeAskedFor = false;
    else if (known !== undefined) known.toBeAskedFor = false;
  }

  #afterRun(batch: BatchEntry): void {
    if (batch.askWhenQuiet && batch.quiet) {
      batch.askWhenQuiet = false;
      this.#tracker.add(batch.id, this.#clock.now());
    }
    if (batch.records.size > 0) return;
    this.#quietBatches.add(batch);
    if (this.#quietBatches.size <= MAX_QUIET_BATCHES) return;
    const [oldest] = this.#quietBatches;
    if (oldest === undefined) return;
    this.#quietBatches.delete(oldest);
    this.#live.delete(oldest.id);
  }
}

/** A copy replaces the one that is here: an acknowledgement must go over the connection that the broker knows. */
function adopt(record: DeliveryRecord, copy: ArrivedMessage): Arrival {
  record.message = copy;
  return { copyOf: 'alive', record };
}
