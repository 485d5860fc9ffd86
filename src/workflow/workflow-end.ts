// From how the method came out to the write that ends the workflow, or begins its next run.
import { toError } from '../core/errors.js';
import type { JournalEntry } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { OutgoingRow, WorkflowChange } from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import type { Ending, Execution } from './execution.js';
import type { OutgoingRows } from './outgoing-rows.js';
import { plainValue } from './plain-value.js';
import { checkedValue } from './planned-workflow.js';
import { diverged } from './workflow-errors.js';

type Parts = Pick<ActivationParts, 'clock' | 'newSeed' | 'newest'>;

export type WorkflowEnd =
  | {
      readonly change: WorkflowChange;
      readonly entries: readonly JournalEntry[];
      readonly outgoing: OutgoingRow[];
    }
  | { readonly problem: Error };

export async function endOf(execution: Execution, rows: OutgoingRows, parts: Parts): Promise<WorkflowEnd> {
  const ending = execution.ending as Ending;
  const atMs = parts.clock.now();
  switch (ending.kind) {
    case 'completed':
      return completed(execution, ending.value, atMs, rows);
    case 'continued': {
      const { input } = ending;
      const version = await versionOfNextRun(execution, input, parts);
      return { change: { status: 'continued', input, seed: parts.newSeed(), version }, entries: [], outgoing: [] };
    }
    case 'failed':
    case 'cancelled': {
      const { kind: status } = ending;
      const error = journalError(toError(ending.error));
      const outgoing = rows.forParent(execution.record, { error });
      return { change: { status, error }, entries: [{ kind: 'ended', atMs, status, error }], outgoing };
    }
  }
}

/** The newest, unless it does not take what this one goes on with. */
async function versionOfNextRun({ record }: Execution, input: unknown, parts: Parts): Promise<number> {
  const newest = parts.newest(record.name);
  if (newest === undefined || 'problem' in (await checkedValue(newest.options.input, input))) return record.version;
  return newest.options.version;
}

/** What the method returned, as it is recorded, or what keeps it from being that. */
export async function resultOf(
  { workflow }: Pick<Execution, 'workflow'>,
  value: unknown,
): Promise<{ readonly plain: unknown } | { readonly problem: Error }> {
  const checked = await checkedValue(workflow.options.result, value);
  if ('problem' in checked)
    return { problem: diverged(`what the method returned does not match the schema of "result": ${checked.problem}`) };
  try {
    return { plain: plainValue(value, 'the result of the workflow') };
  } catch (error) {
    return { problem: diverged(toError(error).message) };
  }
}

async function completed(execution: Execution, value: unknown, atMs: number, rows: OutgoingRows): Promise<WorkflowEnd> {
  const end = await resultOf(execution, value);
  if ('problem' in end) return end;
  const { plain } = end;
  const result = plain === undefined ? {} : { value: plain };
  const entry: JournalEntry = { kind: 'ended', atMs, status: 'completed', ...result };
  const outgoing = rows.forParent(execution.record, result);
  return { change: { status: 'completed', result: plain }, entries: [entry], outgoing };
}
