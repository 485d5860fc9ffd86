// What one activation tells those who listen and those who observe: of what it does while it does it, and of what has happened
// once that is written down. Where nobody wants to know, nothing is made.
import type { JournalEntry } from '../core/workflow-journal.js';
import type { MessageProperties } from '../core/properties.js';
import type { WorkflowProgress } from '../ports/workflow-progress.js';
import type { AcquiredWorkflow, WorkflowChange, WorkflowRecord } from '../ports/workflow-store.js';
import type { ActivationEnd, ActivationObserver, StepEnd, StepObserver } from '../ports/workflow-telemetry.js';
import type { ActivationParts } from './activation-parts.js';
import type { Command } from './command.js';
import type { StepContext } from './flow.js';
import { progressOf } from './progress.js';

type Parts = Pick<ActivationParts, 'clock' | 'feed' | 'telemetry'>;

export class ActivationNews {
  readonly #parts: Parts;
  #record: WorkflowRecord | undefined;
  #observer: ActivationObserver | undefined;
  /** What is not written down yet. */
  #noted: WorkflowProgress[] = [];
  readonly #steps = new Map<Command, StepObserver>();
  #end: ActivationEnd = { status: 'lost' };

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  begin({ record, inbox }: AcquiredWorkflow): void {
    this.#record = record;
    const { name: workflow, id, run, version, context = {} } = record;
    const causes = inbox.map((event) => event.context).filter((cause) => cause !== undefined);
    this.#observer = this.#parts.telemetry.startActivation({ workflow, id, run, version, context, causes });
    if (this.#parts.feed.isHeard) this.#parts.feed.tell({ ...this.#about(record), kind: 'activated' });
  }

  /** @param command of the entry, as it stands before the entry */
  note(entry: JournalEntry, command: Command | undefined): void {
    if (!this.#parts.feed.isHeard || this.#record === undefined) return;
    const progress = progressOf(this.#record, entry, command);
    if (progress !== undefined) this.#noted.push(progress);
  }

  /** @param wakeMs where it let go of the workflow */
  written(change: WorkflowChange, released: boolean, wakeMs: number | undefined): void {
    if (released) this.#end = { status: change.status, ...('error' in change && { error: change.error }) };
    for (const progress of this.#noted.splice(0)) this.#parts.feed.tell(progress);
    if (!released || !this.#parts.feed.isHeard || this.#record === undefined) return;
    const about = this.#about(this.#record);
    if (change.status === 'continued') this.#parts.feed.tell({ ...about, kind: 'continued' });
    else if (change.status === 'blocked' && change.error !== undefined)
      this.#parts.feed.tell({ ...about, kind: 'blocked', error: change.error });
    else if ('waits' in change)
      this.#parts.feed.tell({
        ...about,
        kind: 'waiting',
        waits: change.waits,
        ...(wakeMs !== undefined && { wakeMs }),
      });
  }

  /** `properties` of a message, with what it is to carry. */
  carried(properties: MessageProperties): MessageProperties {
    return this.#observer?.propertiesOf(properties) ?? properties;
  }

  /** `work`, as a part of what observes this attempt. */
  observed(command: Command, work: (context: StepContext) => unknown): (context: StepContext) => unknown {
    if (this.#observer === undefined) return work;
    const { name, attempts: attempt } = command;
    const kind = command.kind === 'compensate' ? 'compensate' : 'step';
    const step = this.#observer.startStep({ command: kind, name, attempt });
    if (step === undefined) return work;
    this.#steps.set(command, step);
    return (context) => step.within(() => work(context));
  }

  /** @param entry that the attempt leaves; none where it was cut short */
  stepEnded(command: Command, entry: JournalEntry | undefined): void {
    const step = this.#steps.get(command);
    if (step === undefined) return;
    this.#steps.delete(command);
    step.ended(stepEnd(entry));
  }

  /** Nothing more is done here. */
  over(): void {
    for (const step of this.#steps.values()) step.ended({ outcome: 'cut' });
    this.#steps.clear();
    this.#observer?.ended(this.#end);
    this.#observer = undefined;
  }

  #about({ name: workflow, id, run }: WorkflowRecord): Pick<WorkflowProgress, 'workflow' | 'id' | 'run' | 'atMs'> {
    return { workflow, id, run, atMs: this.#parts.clock.now() };
  }
}

function stepEnd(entry: JournalEntry | undefined): StepEnd {
  if (entry?.kind === 'completed') return { outcome: 'completed' };
  if (entry?.kind === 'attempt-failed') return { outcome: 'retry', error: entry.error };
  if (entry?.kind === 'failed' || entry?.kind === 'stuck') return { outcome: entry.kind, error: entry.error };
  return { outcome: 'cut' };
}
