// An IdempotencyStore in memory: for one process, whose keys and outcomes are gone when it ends. Bounded: beyond its limits the
// outcomes recorded first are forgotten, and their messages would be worked on again.
import { PulseworkError } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { ClaimAnswer, IdempotencyStore, LeaseTimes, RecordTimes } from '../../ports/idempotency-store.js';

export interface MemoryIdempotencyStoreOptions {
  /** Keys, claimed and recorded together. @default 100,000 */
  readonly maxEntries?: number | undefined;
  /** Recorded outcomes together, in bytes: about what their messages take. @default 64 MiB */
  readonly maxBytes?: number | undefined;
}

export interface MemoryIdempotencyStore extends IdempotencyStore {
  /** Keys, claimed and recorded; those whose time is over may be among them. */
  readonly size: number;
  /** Outcomes forgotten before their time because there were too many. */
  readonly forgotten: number;
}

const DEFAULT_MAX_ENTRIES = 100_000;
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** What an entry takes besides its texts. */
const ENTRY_BYTES = 256;

interface Claim {
  readonly owner: string;
  readonly untilMs: number;
}

interface Recorded {
  readonly owner: string;
  readonly outcome: RecordedOutcome;
  readonly expiresMs: number;
  readonly bytes: number;
}

/** Keys and outcomes of one process. @throws ConfigurationError on an unknown or wrong option. */
export function memoryIdempotencyStore(options: MemoryIdempotencyStoreOptions = {}): MemoryIdempotencyStore {
  const check = new OptionChecker('memoryIdempotencyStore');
  if (check.object('options', options)) {
    const { maxEntries, maxBytes } = options as { maxEntries?: unknown; maxBytes?: unknown };
    check.unknownOptions(options, ['maxEntries', 'maxBytes']);
    check.positiveInteger('maxEntries', maxEntries);
    check.positiveInteger('maxBytes', maxBytes);
  }
  check.throwIfAny();
  return new InMemory(options.maxEntries ?? DEFAULT_MAX_ENTRIES, options.maxBytes ?? DEFAULT_MAX_BYTES);
}

class InMemory implements MemoryIdempotencyStore {
  readonly name = 'memory';
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #claims = new Map<string, Claim>();
  /** In the order in which they were recorded. */
  readonly #recorded = new Map<string, Recorded>();
  #bytes = 0;
  #forgotten = 0;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#claims.size + this.#recorded.size;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  async claim(key: string, owner: string, { nowMs, leaseMs }: LeaseTimes): Promise<ClaimAnswer> {
    const recorded = this.#recorded.get(key);
    if (recorded !== undefined && recorded.expiresMs > nowMs) return { kind: 'recorded', outcome: recorded.outcome };
    this.#drop(key);
    const claim = this.#claims.get(key);
    if (claim !== undefined && claim.untilMs > nowMs) return { kind: 'busy', remainingMs: claim.untilMs - nowMs };
    if (claim === undefined) this.#makeRoom(nowMs);
    this.#claims.set(key, { owner, untilMs: nowMs + leaseMs });
    return { kind: 'claimed' };
  }

  async renew(key: string, owner: string, { nowMs, leaseMs }: LeaseTimes): Promise<boolean> {
    if (this.#claims.get(key)?.owner !== owner) return false;
    this.#claims.set(key, { owner, untilMs: nowMs + leaseMs });
    return true;
  }

  async record(key: string, owner: string, outcome: RecordedOutcome, times: RecordTimes): Promise<boolean> {
    if (this.#recorded.get(key)?.owner === owner) return true;
    if (this.#claims.get(key)?.owner !== owner) return false;
    const bytes = bytesOf(key, outcome);
    if (bytes > this.#maxBytes) throw full(`an outcome of ${bytes} bytes is larger than "maxBytes", ${this.#maxBytes}`);
    this.#claims.delete(key);
    this.#recorded.set(key, { owner, outcome, expiresMs: times.nowMs + times.ttlMs, bytes });
    this.#bytes += bytes;
    this.#forgetExpired(times.nowMs);
    while (this.#bytes > this.#maxBytes) this.#forgetOldest();
    return true;
  }

  async release(key: string, owner: string): Promise<void> {
    if (this.#claims.get(key)?.owner === owner) this.#claims.delete(key);
  }

  /** For one key more. Claims that hold are never given up: two would work on one key. */
  #makeRoom(nowMs: number): void {
    if (this.size < this.#maxEntries) return;
    this.#forgetExpired(nowMs);
    if (this.size >= this.#maxEntries && this.#recorded.size > 0) this.#forgetOldest();
    if (this.size < this.#maxEntries) return;
    for (const [key, { untilMs }] of this.#claims) if (untilMs <= nowMs) this.#claims.delete(key);
    if (this.size >= this.#maxEntries) throw full(`all of its ${this.#maxEntries} keys ("maxEntries") are claimed`);
  }

  /** From the oldest to the first that is not: handlers with a shorter time may leave some behind, which cost only room. */
  #forgetExpired(nowMs: number): void {
    for (const [key, { expiresMs }] of this.#recorded) {
      if (expiresMs > nowMs) return;
      this.#drop(key);
    }
  }

  #forgetOldest(): void {
    const oldest = this.#recorded.keys().next();
    if (oldest.done === true) return;
    this.#drop(oldest.value);
    this.#forgotten += 1;
  }

  #drop(key: string): void {
    const recorded = this.#recorded.get(key);
    if (recorded === undefined) return;
    this.#recorded.delete(key);
    this.#bytes -= recorded.bytes;
  }
}

function bytesOf(key: string, outcome: RecordedOutcome): number {
  const own = ENTRY_BYTES + key.length;
  if (outcome.kind === 'skip') return own + outcome.reason.length;
  if (outcome.kind === 'poison') return own + outcome.reason.length + JSON.stringify(outcome.error ?? '').length;
  return outcome.messages.reduce((sum, { payload, properties }) => {
    const texts = Object.entries(properties).reduce((length, [name, value]) => length + name.length + value.length, 0);
    return sum + ENTRY_BYTES + (payload?.length ?? 0) + texts;
  }, own);
}

function full(rule: string): PulseworkError {
  return new PulseworkError('STORE_FULL', `memory idempotency store: ${rule}; raise the limit`);
}
