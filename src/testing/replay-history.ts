// The check for a safe deploy: an exported history against the code as it is now. Nothing is run but the method itself.
import { ConfigurationError, PulseworkError, describeValue } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { JournalEntry } from '../core/workflow-journal.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import { systemGlobalGuard } from '../system/global-guard.js';
import { systemClock } from '../system/system-clock.js';
import { methodWatch } from '../workflow/determinism.js';
import { Execution } from '../workflow/execution.js';
import { resultOf } from '../workflow/workflow-end.js';
import { WorkflowError } from '../workflow/workflow-errors.js';
import type { WorkflowHistory } from '../workflow/workflow-handle.js';
import type { GivenDefinition } from '../workflow/workflow-plans.js';
import { bindWorkflows, readDefinitions } from '../workflow/workflow-plans.js';

export interface ReplayHistoryOptions {
  /** As for `Workflows.start`. @default `new WorkflowClass()` */
  readonly resolve?: HandlerResolver | undefined;
}

/**
 * Resolves when the code takes the way that the history tells of, to the same end where there is one.
 * @param history as `workflows.history` gave it, also through JSON
 * @throws WorkflowError WORKFLOW_DIVERGED with what differs; PulseworkError STORE_FORMAT_UNKNOWN; ConfigurationError
 */
export async function replayHistory(
  definition: GivenDefinition,
  history: unknown,
  options: ReplayHistoryOptions = {},
): Promise<void> {
  const { record, journal } = historyOf(history);
  const check = new OptionChecker('replayHistory');
  const unbound = readDefinitions([definition], options.resolve !== undefined, check);
  for (const { name, options: own } of unbound) {
    if (name !== record.name) check.problem(`the history is of workflow ${JSON.stringify(record.name)}`);
    else if (own.version !== record.version) check.problem(otherVersion(record.version, own.version));
  }
  check.throwIfAny();
  const bound = await bindWorkflows(unbound, options.resolve);
  try {
    const [workflow] = bound.workflows;
    if (workflow === undefined) return;
    const watch = methodWatch('block', systemGlobalGuard, { warn: () => undefined })?.(record.name);
    const execution = new Execution({ ...workflow, watch }, record, turn);
    const release = systemGlobalGuard.install();
    await execution.replay(journal).finally(release);
    if (execution.problem !== undefined) throw execution.problem;
    await compareEnds(execution, journal);
  } finally {
    await bound.close();
  }
}

async function compareEnds(execution: Execution, journal: readonly JournalEntry[]): Promise<void> {
  const { ending } = execution;
  const ended = journal.find((entry) => entry.kind === 'ended');
  // One that was terminated may stand anywhere; one that goes on has no end to compare.
  if (ended === undefined || ended.status === 'terminated') return;
  const was = endText(ended.status, ended.value);
  const end = ending?.kind === 'completed' ? await resultOf(execution, ending.value) : { plain: undefined };
  if ('problem' in end) throw end.problem;
  const now = ending === undefined ? 'none' : endText(ending.kind, end.plain);
  if (was !== now) throw new WorkflowError('WORKFLOW_DIVERGED', `recorded the end ${was}, now ${now}`);
}

function endText(kind: string, value: unknown): string {
  return value === undefined ? kind : `${kind} ${JSON.stringify(value)}`;
}

/** A workflow goes on under the version that it began with. */
function otherVersion(recorded: number, given: number): string {
  return `the history is of version ${recorded}, the definition of version ${given}; replay it with the definition of its own version`;
}

function historyOf(history: unknown): WorkflowHistory {
  const { format, v } = (history ?? {}) as { readonly format?: unknown; readonly v?: unknown };
  if (format === 'pulsework-workflow-history' && v === 1) return history as WorkflowHistory;
  if (typeof history === 'string')
    throw new ConfigurationError(['replayHistory() takes a history, got a text; give it JSON.parse(text)']);
  const what = format === 'pulsework-workflow-history' ? `version ${describeValue(v)}` : describeValue(history);
  throw new PulseworkError('STORE_FORMAT_UNKNOWN', `replayHistory() takes a history of version 1, got ${what}`);
}

function turn(): Promise<void> {
  return new Promise((resolve) => systemClock.nextTurn(resolve));
}
