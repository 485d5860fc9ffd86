// Long executions that wait, as they stood at their last write. Replaying a journal of hundreds of entries for each event that
// comes would cost the square of it; who finds the workflow unchanged goes on with what is here. It is only a saving: what
// is not here is replayed.
import type { KnownWorkflow, WorkflowKey } from '../ports/workflow-store.js';
import type { Execution } from './execution.js';
import { keyText } from './workflow-ids.js';

/** Shorter ones are replayed in less time than it takes to think of them. */
const MIN_ENTRIES = 100;
/** Of all that are kept: a small part of the memory of a process. */
const MAX_BYTES = 32 * 2 ** 20;

interface Kept {
  readonly execution: Execution;
  readonly known: KnownWorkflow;
}

export class KeptExecutions {
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, Kept>();
  readonly #minEntries: number;
  #bytes = 0;

  constructor(minEntries = MIN_ENTRIES) {
    this.#minEntries = minEntries;
  }

  /** @param writeVersion of the write by which it gave up its lease */
  keep(key: WorkflowKey, execution: Execution, writeVersion: number): void {
    if (execution.entries < this.#minEntries || execution.bytes > MAX_BYTES) return;
    this.take(key);
    this.#kept.set(keyText(key), { execution, known: { seed: execution.record.seed, writeVersion } });
    this.#bytes += execution.bytes;
    for (const text of this.#kept.keys()) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#remove(text);
    }
  }

  /** Whoever takes it works on it alone. Nobody has written since where the store names the same version. */
  take(key: WorkflowKey): Kept | undefined {
    return this.#remove(keyText(key));
  }

  #remove(text: string): Kept | undefined {
    const kept = this.#kept.get(text);
    if (kept === undefined) return undefined;
    this.#kept.delete(text);
    this.#bytes -= kept.execution.bytes;
    return kept;
  }
}
