// Every metric of workflows by name, unit and meaning. docs/observability.md has the same list; a test compares the two.
import type { Meter, MetricOptions } from '@opentelemetry/api';

interface Description {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

export const WORKFLOW_METRICS = {
  started: described('pulsework.workflows.started', '{workflow}', 'Workflows that began.'),
  ended: described('pulsework.workflows.ended', '{workflow}', 'Workflows that ended, by how.'),
  active: described('pulsework.workflows.active', '{workflow}', 'Workflows that this process works on now.'),
  open: described(
    'pulsework.workflows.open',
    '{workflow}',
    'Workflows in the store that have not ended, by how they stand; each process tells of all.',
  ),
  attempts: described('pulsework.step.attempts', '{attempt}', 'Attempts of steps that ended, by how.'),
  duration: described('pulsework.workflow.duration', 's', 'From the begin of a workflow to its end.'),
  stepDuration: described('pulsework.step.duration', 's', 'From the start of an attempt of a step to its end.'),
  lateness: described(
    'pulsework.workflow.timer.lateness',
    's',
    'How long after its time a sleep or a time limit of a workflow was seen to be over.',
  ),
} as const;

/** Steps are calls to other services. */
const STEP_BOUNDARIES: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** A minute, an hour, a day, a month, a year, and what is between. */
const WORKFLOW_BOUNDARIES: readonly number[] = [
  0.1, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000,
];
/** On time, within a scan, and what tells of a process that was away. */
const LATENESS_BOUNDARIES: readonly number[] = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3_600];

export type WorkflowInstruments = ReturnType<typeof makeWorkflowInstruments>;

export function makeWorkflowInstruments(meter: Meter) {
  const { started, ended, active, open, attempts, duration, stepDuration, lateness } = WORKFLOW_METRICS;
  const histogram = ({ name, ...rest }: Description, boundaries: readonly number[]) => {
    const options: MetricOptions = { ...rest, advice: { explicitBucketBoundaries: [...boundaries] } };
    return meter.createHistogram(name, options);
  };
  return {
    started: meter.createCounter(started.name, started),
    ended: meter.createCounter(ended.name, ended),
    active: meter.createUpDownCounter(active.name, active),
    open: meter.createGauge(open.name, open),
    attempts: meter.createCounter(attempts.name, attempts),
    duration: histogram(duration, WORKFLOW_BOUNDARIES),
    stepDuration: histogram(stepDuration, STEP_BOUNDARIES),
    lateness: histogram(lateness, LATENESS_BOUNDARIES),
  };
}

function described(name: string, unit: string, description: string): Description {
  return { name, unit, description };
}
