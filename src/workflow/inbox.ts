// What has happened to a workflow and was not taken yet, and which of it can be taken as things stand.
import type { JournalEntry } from '../core/workflow-journal.js';
import type { InboxEvent } from '../ports/workflow-store.js';
import type { ChildEnd } from './event-message.js';
import { answeredEntry } from './remote-steps.js';
import type { StepDone } from './step-address.js';
import type { StepFacts } from './step-end.js';
import type { Execution } from './execution.js';
import { checkedValue } from './planned-workflow.js';

export interface TakenEvent {
  readonly event: InboxEvent;
  /** Undefined where it changes nothing. */
  readonly entry?: JournalEntry | undefined;
  /** Why a signal was dropped. */
  readonly dropped?: string | undefined;
}

export class Inbox {
  #events: readonly InboxEvent[];
  #seen: number;

  constructor(events: readonly InboxEvent[]) {
    this.#events = events;
    this.#seen = events.at(-1)?.seq ?? 0;
  }

  /** `seq` of the newest event that is known here. */
  get seen(): number {
    return this.#seen;
  }

  has(kind: InboxEvent['kind']): boolean {
    return this.#events.some((event) => event.kind === kind);
  }

  async fetch(read: (afterSeq: number) => Promise<readonly InboxEvent[]>): Promise<void> {
    const events = await read(this.#seen);
    this.#events = [...this.#events, ...events];
    this.#seen = events.at(-1)?.seq ?? this.#seen;
  }

  /** The first event that can be taken now; signals that nobody waits for stay. */
  async next(execution: Execution, facts: StepFacts): Promise<TakenEvent | undefined> {
    for (const event of this.#events) {
      const taken = await this.#take(event, execution, facts);
      if (taken === undefined) continue;
      this.#events = this.#events.filter((other) => other !== event);
      return { event, ...taken };
    }
    return undefined;
  }

  #take(
    event: InboxEvent,
    execution: Execution,
    facts: StepFacts,
  ): Omit<TakenEvent, 'event'> | undefined | Promise<Omit<TakenEvent, 'event'> | undefined> {
    const { nowMs: atMs } = facts;
    switch (event.kind) {
      case 'signal':
        return signalled(event, execution, atMs);
      case 'cancel':
        if (execution.continues) return undefined;
        return execution.takesCancellation ? { entry: { kind: 'cancelled', atMs } } : {};
      case 'resume':
        return execution.open.some(({ stuck }) => stuck) ? { entry: { kind: 'resumed', atMs } } : {};
      case 'child-ended':
        return { entry: childEnded(event.payload as ChildEnd, execution, atMs) };
      case 'step-done':
        return answeredEntry(event.payload as StepDone, execution, facts).then((entry) => ({ entry }));
      case 'terminate':
        return undefined;
    }
  }
}

async function signalled(
  { name, payload }: InboxEvent,
  execution: Execution,
  atMs: number,
): Promise<Omit<TakenEvent, 'event'> | undefined> {
  const waiting = execution.open.find(({ kind, name: awaited }) => kind === 'signal' && awaited === name);
  if (waiting?.work.command !== 'signal') return undefined;
  const checked = await checkedValue(waiting.work.schema, payload);
  if ('problem' in checked) return { dropped: checked.problem };
  const value = payload === undefined ? {} : { value: payload };
  return { entry: { kind: 'completed', at: waiting.at, atMs, ...value } };
}

function childEnded({ run, at, value, error }: ChildEnd, execution: Execution, atMs: number): JournalEntry | undefined {
  const command = execution.commands[at];
  if (run !== execution.record.run || command?.kind !== 'child' || command.state !== 'open') return undefined;
  if (error !== undefined) return { kind: 'failed', at, atMs, error };
  return { kind: 'completed', at, atMs, ...(value !== undefined && { value }) };
}
