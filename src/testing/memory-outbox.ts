// An outbox without a database: for tests of services that add messages in transactions.
import { OptionChecker } from '../core/options.js';
import { CLOCK_METHODS } from '../ports/clock.js';
import type { Clock } from '../ports/clock.js';
import type { EffectStore } from '../ports/effect-store.js';
import { SyncOutbox } from '../runtime/outbox/outbox.js';
import type { MemoryOutboxTransaction } from '../stores/memory/memory-outbox-store.js';
import { MemoryEffectStore } from '../stores/memory/memory-effect-store.js';
import { MemoryOutboxStore } from '../stores/memory/memory-outbox-store.js';
import { systemClock } from '../system/system-clock.js';

export class MemoryOutbox extends SyncOutbox<MemoryOutboxTransaction> {
  declare readonly store: MemoryOutboxStore;
  readonly #clock: Clock;

  constructor(store: MemoryOutboxStore, clock: Clock) {
    super(store, clock);
    this.#clock = clock;
  }

  /** A transaction for `add`: `commit()` or `rollback()` it. */
  begin(): MemoryOutboxTransaction {
    return this.store.begin();
  }

  /** Records of what was done, committed in the transactions of this outbox: for `effects({ store })`. */
  effects(): EffectStore<MemoryOutboxTransaction> {
    return new MemoryEffectStore(() => this.begin(), this.#clock);
  }
}

/** @param options `clock`: that of the runtime, e.g. a FakeClock. @default the clock of the system */
export function memoryOutbox(options: { readonly clock?: Clock | undefined } = {}): MemoryOutbox {
  const check = new OptionChecker('memoryOutbox');
  if (check.object('options', options)) check.unknownOptions(options, ['clock']);
  check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. a FakeClock');
  check.throwIfAny();
  const { clock = systemClock } = options;
  return new MemoryOutbox(new MemoryOutboxStore(clock), clock);
}
