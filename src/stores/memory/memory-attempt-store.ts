// An AttemptStore in memory, for tests: its records live in an AttemptMemory, which survives the death of a process that
// a test plays. For a real process it would be worth nothing, because its records die with it.
import type { AttemptEnd, AttemptStart } from '../../core/attempt-records.js';
import { AttemptRecords } from '../../core/attempt-records.js';
import { PulseworkError, describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { AttemptRecord, AttemptStore, AttemptStoreSummary } from '../../ports/attempt-store.js';

export interface MemoryAttemptStoreOptions {
  /** What outlives the process. @default one of its own */
  readonly memory?: AttemptMemory | undefined;
  /** Beyond it the longest untouched records are forgotten. @default 100,000 */
  readonly maxRecords?: number | undefined;
}

/** What stays when a process dies: the place of a disk in a test. */
export class AttemptMemory {
  /** @internal */
  records: AttemptRecords | undefined;
  /** The store that has it open. @internal */
  owner: object | undefined;

  /** The process whose store has this open dies: nothing it still does arrives here, and another may open it. */
  processDied(): void {
    this.owner = undefined;
  }
}

/** @throws ConfigurationError on an unknown or wrong option. */
export function memoryAttemptStore(options: MemoryAttemptStoreOptions = {}): AttemptStore {
  checkOptions(options);
  return new MemoryAttemptStore(options.memory ?? new AttemptMemory(), options.maxRecords ?? 100_000);
}

function checkOptions(options: MemoryAttemptStoreOptions): void {
  const check = new OptionChecker('memoryAttemptStore');
  if (check.object('options', options)) {
    const { memory, maxRecords } = options as { memory?: unknown; maxRecords?: unknown };
    check.unknownOptions(options, ['memory', 'maxRecords']);
    check.positiveInteger('maxRecords', maxRecords);
    if (memory !== undefined && !(memory instanceof AttemptMemory))
      check.problem(`"memory" must be an AttemptMemory, got ${describeValue(memory)}`);
  }
  check.throwIfAny();
}

class MemoryAttemptStore implements AttemptStore {
  readonly name = 'memory';
  readonly #memory: AttemptMemory;
  readonly #maxRecords: number;
  #records: AttemptRecords | undefined;
  #opened = 0;
  #suspects = 0;
  #wasOpen = false;

  constructor(memory: AttemptMemory, maxRecords: number) {
    this.#memory = memory;
    this.#maxRecords = maxRecords;
  }

  get forgotten(): number {
    return this.#records?.forgotten ?? 0;
  }

  async open(): Promise<AttemptStoreSummary> {
    const { owner } = this.#memory;
    if (owner !== undefined && owner !== this) {
      throw new PulseworkError('STORE_LOCKED', 'the attempt store is open in another process; close it there first');
    }
    if (owner === undefined) this.#takeOver();
    this.#opened += 1;
    return { records: this.#open().size, suspects: this.#suspects };
  }

  find(key: string): AttemptRecord | undefined {
    const stored = this.#open().get(key);
    if (stored === undefined) return undefined;
    const { attempts, notBeforeMs, deaths, state } = stored;
    return { attempts, notBeforeMs, deaths, suspect: state === 'suspect' };
  }

  async begin(key: string, start: AttemptStart): Promise<void> {
    this.#write((records) => records.begin(key, start));
  }

  async end(key: string, end: AttemptEnd): Promise<void> {
    this.#write((records) => records.end(key, end));
  }

  async delete(key: string): Promise<void> {
    this.#write((records) => records.delete(key));
  }

  async close(): Promise<void> {
    if (this.#opened === 0) return;
    this.#opened -= 1;
    if (this.#opened > 0) return;
    if (this.#memory.owner === this) {
      this.#write((records) => records.closeRunning());
      this.#memory.owner = undefined;
    }
    this.#records = undefined;
  }

  #takeOver(): void {
    const records = new AttemptRecords(this.#maxRecords, this.#memory.records?.entries());
    this.#suspects = records.processDied();
    this.#records = records;
    this.#memory.records = records;
    this.#memory.owner = this;
    this.#wasOpen = true;
    this.#opened = 0;
  }

  #write(change: (records: AttemptRecords) => unknown): void {
    const records = this.#open();
    change(records);
    records.forgetExcess();
  }

  #open(): AttemptRecords {
    const records = this.#memory.owner === this ? this.#records : undefined;
    if (records !== undefined) return records;
    throw this.#wasOpen
      ? new PulseworkError('ALREADY_CLOSED', 'the attempt store was closed before the call')
      : new PulseworkError('ILLEGAL_STATE', 'the attempt store is not open yet; open() it first');
  }
}
