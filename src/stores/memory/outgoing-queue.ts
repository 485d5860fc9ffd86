// Messages of workflows on their way to the broker, in the order in which they were written, and who sends them now.
import type { OutgoingRequest, OutgoingRow, TakenOutgoing, WorkflowKey } from '../../ports/workflow-store.js';
import { keyText } from './kept-workflow.js';

interface Waiting extends TakenOutgoing {
  takenBy: string | undefined;
  untilMs: number;
}

export class OutgoingQueue {
  /** By message id, in order. */
  readonly #waiting = new Map<string, Waiting>();

  add(key: WorkflowKey, rows: readonly OutgoingRow[]): void {
    for (const row of rows) this.#waiting.set(row.messageId, { key, ...row, takenBy: undefined, untilMs: -Infinity });
  }

  take({ owner, nowMs, leaseMs, limit, exceptWorkflows = [] }: OutgoingRequest): readonly TakenOutgoing[] {
    /** Workflows of which none is taken: left out, or somebody else sends an earlier one. */
    const busy = new Set(exceptWorkflows.map(keyText));
    const taken: TakenOutgoing[] = [];
    for (const waiting of this.#waiting.values()) {
      if (taken.length === limit) break;
      const isOthers = waiting.takenBy !== undefined && waiting.takenBy !== owner && waiting.untilMs > nowMs;
      if (isOthers) busy.add(keyText(waiting.key));
      if (busy.has(keyText(waiting.key))) continue;
      waiting.takenBy = owner;
      waiting.untilMs = nowMs + leaseMs;
      taken.push({ key: waiting.key, messageId: waiting.messageId, message: waiting.message });
    }
    return taken;
  }

  remove(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#waiting.delete(id);
  }
}
