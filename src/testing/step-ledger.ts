// What a test knows of steps from outside the workflow: which ran, and which of their results the store has taken.
import type { WorkflowKey, WorkflowStore, WorkflowWrite, WriteAnswer } from '../ports/workflow-store.js';

/** One run of a step's work. */
export interface StepRunRecord {
  readonly workflow: string;
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  /** As the step got it: the same in each attempt. */
  readonly idempotencyKey: string;
}

export class StepLedger {
  readonly runs: StepRunRecord[] = [];
  /** What must never happen, a sentence each. */
  readonly violations: string[] = [];
  /** How many entries of journals the store has taken. */
  entries = 0;
  /** Idempotency keys of steps whose end is written down. */
  readonly #ended = new Set<string>();

  ran(run: StepRunRecord): void {
    this.runs.push(run);
    if (this.#ended.has(run.idempotencyKey))
      this.violations.push(`${run.step} of ${run.workflow} ${run.id} ran again after its end had been recorded`);
  }

  /** `store`, watched: what it has really taken, whatever answer came of it. */
  watching(store: WorkflowStore): WorkflowStore {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'write') return (key: WorkflowKey, write: WorkflowWrite) => this.#write(target, key, write);
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
  }

  async #write(store: WorkflowStore, key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer> {
    const ends = write.entries.filter((entry) => entry.kind === 'completed' || entry.kind === 'failed');
    const run = ends.length > 0 ? (await store.get(key))?.run : undefined;
    const answer = await store.write(key, write);
    this.entries += write.entries.length;
    for (const { at } of ends) this.#ended.add(`${key.name}/${key.id}/${run}/${at}`);
    return answer;
  }
}
