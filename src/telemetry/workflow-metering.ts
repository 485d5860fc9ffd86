// What is counted and measured of workflows. Each thing is recorded once where it happens: next to the write that goes before it,
// an instrument costs nothing.
import type { Attributes, Meter } from '@opentelemetry/api';
import type { WorkflowCount, WorkflowProgress } from '../ports/workflow-progress.js';
import { BoundedWords } from './metric-series.js';
import { OTHER } from './semconv.js';
import type { WorkflowInstruments } from './workflow-instruments.js';
import { makeWorkflowInstruments } from './workflow-instruments.js';
import * as names from './workflow-semconv.js';

/** All of those that have not ended; one that nobody is in any more reads 0. */
const OPEN_STATUSES = ['running', 'stuck', 'blocked'] as const;

export class WorkflowMetering {
  readonly #instruments: WorkflowInstruments;
  /** A method may make up names of steps. */
  readonly #steps: BoundedWords;
  /** Of all names that were ever counted. */
  readonly #counted = new Set<string>();

  constructor(meter: Meter, { maxHandlers }: { readonly maxHandlers: number }) {
    this.#instruments = makeWorkflowInstruments(meter);
    this.#steps = new BoundedWords(maxHandlers, OTHER);
  }

  /** @returns what is called when it is over */
  activationStarted(workflow: string): () => void {
    const attributes = { [names.WORKFLOW_NAME]: workflow };
    this.#instruments.active.add(1, attributes);
    return () => this.#instruments.active.add(-1, attributes);
  }

  happened(progress: WorkflowProgress): void {
    const workflow = { [names.WORKFLOW_NAME]: progress.workflow };
    if (progress.kind === 'started') this.#instruments.started.add(1, workflow);
    if (progress.kind === 'ended') {
      const ended = { ...workflow, [names.WORKFLOW_STATUS]: progress.status };
      this.#instruments.ended.add(1, ended);
      this.#instruments.duration.record(progress.durationMs / 1_000, ended);
    }
    if (progress.kind === 'completed' && progress.lateMs !== undefined)
      this.#instruments.lateness.record(progress.lateMs / 1_000, workflow);
    if (progress.kind === 'attempt-failed') this.#attempt(progress, 'retry');
    if (progress.kind === 'completed' || progress.kind === 'failed' || progress.kind === 'stuck')
      this.#attempt(progress, progress.kind);
  }

  counted(counts: readonly WorkflowCount[]): void {
    for (const { name } of counts) this.#counted.add(name);
    for (const name of this.#counted)
      for (const status of OPEN_STATUSES) {
        const found = counts.find((each) => each.name === name && each.status === status);
        const attributes = { [names.WORKFLOW_NAME]: name, [names.WORKFLOW_STATUS]: status };
        this.#instruments.open.record(found?.count ?? 0, attributes);
      }
  }

  /** What is no attempt, such as the end of a sleep, is left out. */
  #attempt(
    progress: Extract<WorkflowProgress, { kind: 'attempt-failed' | 'completed' | 'failed' | 'stuck' }>,
    outcome: string,
  ): void {
    if (progress.attempt === undefined) return;
    const { workflow, command, name, durationMs } = progress;
    const own = command === 'compensate' ? `compensate ${name}` : name;
    const step = this.#steps.of(`${workflow} ${own}`) === OTHER ? OTHER : own;
    const attributes: Attributes = {
      [names.WORKFLOW_NAME]: workflow,
      [names.STEP_NAME]: step,
      [names.STEP_OUTCOME]: outcome,
    };
    this.#instruments.attempts.add(1, attributes);
    this.#instruments.stepDuration.record(durationMs / 1_000, attributes);
  }
}
