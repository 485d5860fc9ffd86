// What one key or tenant may take of a handler: runs at a time, and runs started per second. What is beyond waits behind
// its own key, and the others go on. Under `ordering` a delivery owns its lane before it comes here.
import { containRejection, describeValue, toError } from '../core/errors.js';
import type { FairnessMessage } from '../core/fairness.js';
import { orderKeyOf, shownKey } from '../core/message-key.js';
import { TokenBucket } from '../core/token-bucket.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';

/** A key that had as many waiting as may is full until it has come to this share: else each message would pause and resume. */
const FULL_UNTIL = 0.9;
/** Keys that are remembered before those that need not be are forgotten. */
const MIN_SWEEP = 1_000;

export interface FairnessParts {
  readonly plan: Pick<HandlerPlan, 'name' | 'fairness' | 'maxLaneMessages'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Its turn has come. */
  readonly onTurn: (record: DeliveryRecord) => void;
  /** After turns that came by time. */
  readonly onTime: () => void;
}

/** What is here of one key. */
interface Share {
  readonly key: string;
  /** Had their turn, and wait for a slot. */
  admitted: number;
  running: number;
  waiting: DeliveryRecord[];
  full: boolean;
  readonly tokens: TokenBucket | undefined;
  /** For its next token, only while a delivery waits for nothing else. */
  timer: Timer | undefined;
}

export class Fairness {
  readonly #parts: FairnessParts;
  readonly #shares = new Map<string, Share>();
  /** Of what had its turn, until its run has ended. */
  readonly #shareOf = new Map<DeliveryRecord, Share>();
  #sweepAt = MIN_SWEEP;
  #fullShares = 0;
  #waiting = 0;
  #waitingBytes = 0;

  constructor(parts: FairnessParts) {
    this.#parts = parts;
  }

  /** Deliveries that wait because of their key's share. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Payload bytes of them. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** A key with as many waiting as may; undefined when there is none. */
  get fullKey(): string | undefined {
    if (this.#fullShares === 0) return undefined;
    for (const { key, full } of this.#shares.values()) if (full) return key;
    return undefined;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#shares.size;
  }

  /** Its turn comes now, or when its key has room. */
  enter(record: DeliveryRecord): void {
    const key = this.#keyOf(record);
    if (key === undefined) return this.#parts.onTurn(record);
    const share = this.#shareFor(key);
    share.waiting.push(record);
    this.#waiting++;
    this.#waitingBytes += record.payloadBytes;
    this.#advance(share);
  }

  /** The run of a record that had its turn starts. */
  started(record: DeliveryRecord): void {
    const share = this.#shareOf.get(record);
    if (share === undefined) return;
    share.admitted--;
    share.running++;
    share.tokens?.take(this.#parts.clock.now());
    this.#advance(share);
  }

  ended(record: DeliveryRecord): void {
    const share = this.#shareOf.get(record);
    if (share === undefined) return;
    share.running--;
    this.#left(record, share);
  }

  /** It had its turn, and will not start. */
  withdrawn(record: DeliveryRecord): void {
    const share = this.#shareOf.get(record);
    if (share === undefined) return;
    share.admitted--;
    this.#left(record, share);
  }

  /** Gives one that waits and matches its turn, whatever its key's share: what others wait for must not wait here. */
  takeWaiting(matches: (record: DeliveryRecord) => boolean): DeliveryRecord | undefined {
    for (const share of this.#shares.values()) {
      const at = share.waiting.findIndex(matches);
      const [record] = at < 0 ? [] : share.waiting.splice(at, 1);
      if (record === undefined) continue;
      this.#leavesWait(record);
      this.#admit(record, share);
      this.#advance(share);
      return record;
    }
    return undefined;
  }

  /** Takes out what waits and matches. */
  removeWaiting(matches: (record: DeliveryRecord) => boolean): readonly DeliveryRecord[] {
    const removed: DeliveryRecord[] = [];
    for (const share of this.#shares.values()) {
      const gone = share.waiting.filter(matches);
      if (gone.length === 0) continue;
      share.waiting = share.waiting.filter((record) => !matches(record));
      for (const record of gone) this.#leavesWait(record);
      removed.push(...gone);
      this.#advance(share);
    }
    return removed;
  }

  #left(record: DeliveryRecord, share: Share): void {
    this.#shareOf.delete(record);
    this.#advance(share);
    if (isIdle(share) && share.tokens === undefined) this.#shares.delete(share.key);
  }

  /** Gives turns while there is room; what still waits only for time gets a timer. */
  #advance(share: Share): void {
    while (share.waiting.length > 0 && this.#hasRoom(share)) {
      const record = share.waiting.shift() as DeliveryRecord;
      this.#leavesWait(record);
      this.#admit(record, share);
      this.#parts.onTurn(record);
    }
    this.#weigh(share);
    this.#setTimer(share);
  }

  /** Tokens are taken at the start: what has had its turn and not started yet will take one each. */
  #hasRoom(share: Share): boolean {
    if (share.admitted + share.running >= this.#maxConcurrent) return false;
    return share.tokens === undefined || share.tokens.available(this.#parts.clock.now()) > share.admitted;
  }

  #admit(record: DeliveryRecord, share: Share): void {
    share.admitted++;
    this.#shareOf.set(record, share);
  }

  #leavesWait(record: DeliveryRecord): void {
    this.#waiting--;
    this.#waitingBytes -= record.payloadBytes;
  }

  #weigh(share: Share): void {
    const limit = this.#parts.plan.maxLaneMessages * (share.full ? FULL_UNTIL : 1);
    const full = share.waiting.length >= limit;
    if (full === share.full) return;
    share.full = full;
    this.#fullShares += full ? 1 : -1;
  }

  #setTimer(share: Share): void {
    const { tokens, waiting, admitted, running } = share;
    const waitsForTime = waiting.length > 0 && admitted === 0 && running < this.#maxConcurrent;
    if (tokens === undefined || !waitsForTime) {
      share.timer?.cancel();
      share.timer = undefined;
      return;
    }
    const { clock, onTime } = this.#parts;
    share.timer ??= clock.setTimer(tokens.untilNextMs(clock.now()), () => {
      share.timer = undefined;
      this.#advance(share);
      onTime();
    });
  }

  get #maxConcurrent(): number {
    return this.#parts.plan.fairness?.maxConcurrent ?? Infinity;
  }

  #shareFor(key: string): Share {
    const known = this.#shares.get(key);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const { plan, clock } = this.#parts;
    const perSecond = plan.fairness?.ratePerSecond;
    const rate = perSecond === undefined ? undefined : { perSecond, burst: Math.max(1, perSecond) };
    const tokens = rate && new TokenBucket(rate, clock.now());
    const made = { key, admitted: 0, running: 0, waiting: [], full: false, tokens, timer: undefined };
    this.#shares.set(key, made);
    return made;
  }

  /** A key with nothing here is as good as new once its bucket is full. No timer sees to that: the next new keys do. */
  #forgetIdle(): void {
    if (this.#shares.size < this.#sweepAt) return;
    const nowMs = this.#parts.clock.now();
    for (const [key, share] of this.#shares)
      if (isIdle(share) && share.tokens?.isFull(nowMs) !== false) this.#shares.delete(key);
    this.#sweepAt = Math.max(MIN_SWEEP, 2 * this.#shares.size);
  }

  #keyOf(record: DeliveryRecord): string | undefined {
    const { plan, logger } = this.#parts;
    const by = plan.fairness?.by;
    if (by === undefined) return orderKeyOf(record.message);
    try {
      const key: unknown = by(messageOf(record));
      if (key === undefined || typeof key === 'string') return key;
      containRejection(key);
      throw new TypeError(`it must give a text or undefined, got ${describeValue(key)}`);
    } catch (error) {
      const fields = { ...record.lineFields(plan.name), error: toError(error) };
      logger.error('"fairness.by" failed; the message takes the share of its order key', fields);
      return orderKeyOf(record.message);
    }
  }
}

function isIdle({ admitted, running, waiting }: Share): boolean {
  return admitted + running + waiting.length === 0;
}

function messageOf({ message, originTopic: topic }: DeliveryRecord): FairnessMessage {
  const { key, orderingKey, properties } = message;
  return { topic, key: shownKey(key), orderingKey, properties };
}
