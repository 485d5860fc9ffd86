// What is to be written next.
import type { JournalEntry } from '../core/workflow-journal.js';
import type { OutgoingRow, WorkflowWrite } from '../ports/workflow-store.js';

export class Batch {
  entries: JournalEntry[] = [];
  consumed: number[] = [];
  outgoing: OutgoingRow[] = [];

  get isEmpty(): boolean {
    return this.entries.length + this.consumed.length + this.outgoing.length === 0;
  }

  /** All of it: a write that fails is repeated as it is. */
  take(): Pick<WorkflowWrite, 'entries' | 'consumed' | 'outgoing'> {
    const { entries, consumed, outgoing } = this;
    this.entries = [];
    this.consumed = [];
    this.outgoing = [];
    return { entries, consumed, outgoing };
  }
}
