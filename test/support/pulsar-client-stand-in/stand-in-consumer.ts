// A consumer of the stand-in: what a program holds (StandInConsumer) and what lives on when that is collected (ConsumerCore).
import type { ReceivedMessage } from 'pulsework';
import { systemClock } from 'pulsework';
import type { WireSubscription } from 'pulsework/wire';
import type { OddBehaviours, Violations } from './odd-behaviours.js';
import { failure, failureOf } from './stand-in-errors.js';
import { StandInMessage, StandInMessageId } from './stand-in-messages.js';
import { StandInNacks } from './stand-in-nacks.js';

const ACK_GROUPING_MS = 100;
const ACK_GROUP_SIZE = 1_000;

interface Pending {
  readonly resolve: (message: StandInMessage) => void;
  readonly reject: (error: Error) => void;
}

export interface ConsumerSettings {
  readonly singleActive: boolean;
  readonly nackDelayMs: number;
  readonly batchIndexAcks: boolean;
}

export class ConsumerCore {
  readonly #wire: WireSubscription;
  readonly #settings: ConsumerSettings;
  readonly #odd: OddBehaviours;
  readonly #violations: Violations;
  readonly #nacks: StandInNacks;
  readonly #end = new AbortController();
  readonly #pending: Pending[] = [];
  /** Batch messages acknowledged so far, where parts of a batch are not sent. */
  readonly #parts = new Map<string, number>();
  #acks: StandInMessageId[] = [];
  #ackTimer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #ahead: Promise<ReceivedMessage | undefined> | undefined;
  #pumping = false;
  #connected = true;
  #closing: Promise<void> | undefined;
  #lastBurstMs = -Infinity;
  #inBurst = false;
  /** Redelivery requests that were made, for tests that must see none. */
  nacked = 0;
  /** The least time between two bursts of them, milliseconds; what is asked for in one turn is one burst. */
  closestBurstsMs = Infinity;
  /** The most calls of `receive()` that were under way at a time. */
  mostPending = 0;

  constructor(wire: WireSubscription, settings: ConsumerSettings, odd: OddBehaviours, violations: Violations) {
    this.#wire = wire;
    this.#settings = settings;
    this.#odd = odd;
    this.#violations = violations;
    this.#nacks = new StandInNacks(settings.nackDelayMs, odd.starvingNacks, (ids) => this.#redeliver(ids), systemClock);
    wire.onState(({ state }) => {
      this.#connected = state !== 'lost';
      // What was not sent is lost; what was to be asked for comes by itself, and is asked for nevertheless.
      if (!this.#connected) this.#acks = [];
    });
  }

  get connected(): boolean {
    return this.#connected && this.#closing === undefined;
  }

  receive(): Promise<StandInMessage> {
    if (this.#closing !== undefined) return Promise.reject(failure('Failed to receive message', 'AlreadyClosed'));
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.mostPending = Math.max(this.mostPending, this.#pending.length);
      void this.#pump();
    });
  }

  async acknowledge(id: unknown): Promise<null> {
    if (this.#closing !== undefined) throw failure('Failed to acknowledge id', 'AlreadyClosed');
    // "Succeeds".
    if (id instanceof StandInMessage) return null;
    if (!(id instanceof StandInMessageId)) throw new Error('Invalid argument');
    if (!this.#odd.earlyAcks) {
      await this.#sendAcks([id]);
      return null;
    }
    if (!this.#connected) return null;
    this.#acks.push(id);
    if (this.#acks.length >= ACK_GROUP_SIZE) void this.#flush();
    else this.#ackTimer ??= setTimeout(() => void this.#flush(), ACK_GROUPING_MS);
    return null;
  }

  async acknowledgeCumulative(id: unknown): Promise<null> {
    if (this.#closing !== undefined) throw failure('Failed to acknowledge cumulatively by id', 'AlreadyClosed');
    if (!(id instanceof StandInMessageId) || typeof id.known === 'string') throw new Error('Invalid argument');
    if (!this.#settings.singleActive) {
      const result = 'ResultCumulativeAcknowledgementNotAllowedError';
      throw failure('Failed to acknowledge cumulatively by id', result);
    }
    await this.#flush();
    await this.#wire.acknowledgeCumulative({ ...id.known, topic: '' });
    return null;
  }

  negativeAcknowledge(id: unknown): void {
    if (!(id instanceof StandInMessageId)) this.#violations.abort('negativeAcknowledge of what is no message id');
    this.nacked += 1;
    this.#timeBurst();
    if (this.#closing === undefined) this.#nacks.add(id);
  }

  #timeBurst(): void {
    if (this.#inBurst) return;
    this.#inBurst = true;
    setImmediate(() => (this.#inBurst = false));
    const nowMs = performance.now();
    this.closestBurstsMs = Math.min(this.closestBurstsMs, nowMs - this.#lastBurstMs);
    this.#lastBurstMs = nowMs;
  }

  async seek(to: StandInMessageId | Date): Promise<null> {
    if (this.#closing !== undefined) throw failure('Failed to seek message by id', 'AlreadyClosed');
    const known = to instanceof Date ? to : to.known;
    try {
      await this.#wire.seek(known instanceof Date || typeof known === 'string' ? known : { ...known, topic: '' });
    } catch (error) {
      throw failureOf('Failed to seek message by id', error, this.#odd);
    }
    return null;
  }

  /** Sends what is acknowledged, forgets what was asked for, rejects who receives. Again is no failure. */
  async close(): Promise<null> {
    this.#closing ??= this.#close(true);
    await this.#closing;
    return null;
  }

  /** As when the process ends: nothing is sent any more. */
  async exit(): Promise<void> {
    this.#acks = [];
    this.#closing ??= this.#close(false);
    await this.#closing;
  }

  /** Nobody holds the consumer any more. */
  collected(): void {
    if (this.#closing !== undefined && this.#pending.length === 0) return;
    if (this.#pending.length > 0) this.#violations.note('a consumer was collected while it received (bad_weak_ptr)');
    void this.exit();
  }

  async #close(flushes: boolean): Promise<void> {
    const flushed = flushes ? this.#flush() : Promise.resolve();
    clearTimeout(this.#ackTimer);
    this.#nacks.clear();
    for (const { reject } of this.#pending.splice(0)) reject(failure('Failed to receive message', 'AlreadyClosed'));
    await flushed;
    this.#end.abort();
    await this.#wire.close();
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#pending.length > 0) {
      const ready = [await this.#next()];
      if (this.#odd.reversedReceives) await this.#gather(ready);
      // The n-th call gets the n-th message; what is ready together settles in reverse.
      const settled = this.#pending.splice(0, ready.length).map((pending, i) => [pending, ready[i]] as const);
      for (const [pending, message] of settled.reverse())
        if (message !== undefined) pending.resolve(new StandInMessage(message, this.#odd));
      if (this.#closing !== undefined) break;
    }
    this.#pumping = false;
  }

  #next(): Promise<ReceivedMessage | undefined> {
    const next = this.#ahead ?? this.#wire.receive(this.#end.signal);
    this.#ahead = undefined;
    return next;
  }

  async #gather(ready: (ReceivedMessage | undefined)[]): Promise<void> {
    while (ready.length < this.#pending.length && this.#closing === undefined) {
      const next = this.#next();
      const later = Symbol('later');
      const first = await Promise.race([next, new Promise<symbol>((resolve) => setImmediate(() => resolve(later)))]);
      if (typeof first === 'symbol') {
        this.#ahead = next;
        return;
      }
      ready.push(first);
    }
  }

  /** Waits for what is being sent, too: a close must not overtake it. */
  #flush(): Promise<void> {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    const acks = this.#acks;
    this.#acks = [];
    if (acks.length > 0) {
      const sending = this.#sendAcks(acks).catch(() => undefined);
      this.#flushing = Promise.all([this.#flushing, sending]).then(() => undefined);
    }
    return this.#flushing;
  }

  async #sendAcks(acks: readonly StandInMessageId[]): Promise<void> {
    const ids = acks.flatMap(({ known, live }) => {
      if (typeof known === 'string') return [];
      // An id that was read from bytes knows no batch: it stands for the whole entry.
      const id = live ? known : { ...known, batchIndex: -1, topic: '' };
      return this.#isSent(id) ? [id] : [];
    });
    await this.#wire.acknowledge(ids);
  }

  #isSent({ ledgerId, entryId, batchIndex, batchSize }: Exclude<StandInMessageId['known'], string>): boolean {
    if (this.#settings.batchIndexAcks || batchIndex < 0) return true;
    const key = `${ledgerId}:${entryId}`;
    const parts = (this.#parts.get(key) ?? 0) + 1;
    this.#parts.set(key, parts);
    return parts >= batchSize;
  }

  #redeliver(ids: readonly StandInMessageId[]): void {
    // The request is lost without a connection.
    if (!this.connected) return;
    const known = ids.flatMap((id) => (typeof id.known === 'string' ? [] : [{ ...id.known, topic: '' }]));
    void this.#wire.redeliver(known).catch(() => undefined);
  }
}

/** What a program holds. Nothing of the stand-in may refer to it, or it would never be collected. */
export class StandInConsumer {
  readonly #core: ConsumerCore;
  readonly #violations: Violations;

  constructor(core: ConsumerCore, violations: Violations) {
    this.#core = core;
    this.#violations = violations;
  }

  receive(...timeout: readonly unknown[]): Promise<StandInMessage> {
    if (timeout.length > 0) this.#violations.abort('receive() with an argument blocks a thread, or for ever');
    return this.#core.receive();
  }

  acknowledge(): Promise<null> {
    return this.#violations.abort('acknowledge(message) is not used: ids are what is kept');
  }

  acknowledgeId(id: unknown): Promise<null> {
    return this.#core.acknowledge(id);
  }

  acknowledgeCumulativeId(id: unknown): Promise<null> {
    return this.#core.acknowledgeCumulative(id);
  }

  negativeAcknowledgeId(id: unknown): void {
    this.#core.negativeAcknowledge(id);
  }

  seek(id: unknown): Promise<null> {
    if (!(id instanceof StandInMessageId)) return this.#violations.abort('seek to what is no message id');
    return this.#core.seek(id);
  }

  seekTimestamp(epochMs: unknown): Promise<null> {
    if (typeof epochMs !== 'number' || !(epochMs >= 0)) return this.#violations.abort('seek to what is no time');
    return this.#core.seek(new Date(epochMs));
  }

  isConnected(): boolean {
    return this.#core.connected;
  }

  close(): Promise<null> {
    return this.#core.close();
  }
}
