// The telemetry of a runtime as the machine calls it: what is absent is not called, and what it throws changes nothing.
import type { MessageProperties } from '../core/properties.js';
import type { WorkflowCount, WorkflowProgress } from '../ports/workflow-progress.js';
import type {
  ActivationEnd,
  ActivationObserver,
  ActivationStart,
  StepEnd,
  StepObserver,
  StepStart,
} from '../ports/workflow-telemetry.js';
import type { TelemetryHost } from '../runtime/telemetry-host.js';

export class WorkflowTelemetry {
  readonly #host: TelemetryHost;

  constructor(host: TelemetryHost) {
    this.#host = host;
  }

  /** Whether anybody is told of progress. */
  get isHeard(): boolean {
    return this.#host.workflowHooks.onWorkflow !== undefined;
  }

  /** Whether anybody wants to know how many there are. */
  get wantsCounts(): boolean {
    return this.#host.workflowHooks.onWorkflowCounts !== undefined;
  }

  /** Undefined where there is nothing to keep. */
  contextOf(properties: MessageProperties): MessageProperties | undefined {
    const hooks = this.#host.workflowHooks;
    if (hooks.contextOf === undefined) return undefined;
    const context = this.#host.contain('contextOf', () => ({ ...hooks.contextOf?.(properties) }));
    return context === undefined || Object.keys(context).length === 0 ? undefined : context;
  }

  startActivation(start: ActivationStart): ActivationObserver | undefined {
    const hooks = this.#host.workflowHooks;
    if (hooks.startActivation === undefined) return undefined;
    const observer = this.#host.contain('startActivation', () => hooks.startActivation?.(start));
    return observer && this.#contained(observer);
  }

  tell(progress: WorkflowProgress): void {
    const hooks = this.#host.workflowHooks;
    if (this.isHeard) this.#host.contain('onWorkflow', () => hooks.onWorkflow?.(progress));
  }

  count(counts: readonly WorkflowCount[]): void {
    const hooks = this.#host.workflowHooks;
    if (this.wantsCounts) this.#host.contain('onWorkflowCounts', () => hooks.onWorkflowCounts?.(counts));
  }

  #contained(observer: ActivationObserver): ActivationObserver {
    const host = this.#host;
    return {
      propertiesOf: (properties) =>
        host.contain('propertiesOf', () => ({ ...observer.propertiesOf(properties) })) ?? properties,
      startStep: (start: StepStart) => {
        const step = host.contain('startStep', () => observer.startStep(start));
        return step && this.#containedStep(step);
      },
      ended: (end: ActivationEnd) => host.contain('ended', () => observer.ended(end)),
    };
  }

  #containedStep(step: StepObserver): StepObserver {
    return {
      within: (run) => this.#host.within(step, run),
      ended: (end: StepEnd) => this.#host.contain('ended', () => step.ended(end)),
    };
  }
}
