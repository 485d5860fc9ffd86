// What a start and a write make of the record of a workflow: the same in every store. Pure.
import { hasEnded } from '../core/workflow-journal.js';
import type { KnownWorkflow, NewWorkflow, WorkflowChange, WorkflowKey, WorkflowRecord } from './workflow-store.js';

/** A record without its wake time, which stores keep where they find it by. */
export type WorkflowState = Omit<WorkflowRecord, 'wakeMs'>;

/** What stays of them over a `continued` write, the newest: a workflow that never ends must not need ever more room. */
export const CONSUMED_IDS_KEPT = 1_000;

export function newState({ name, id }: WorkflowKey, workflow: NewWorkflow, nowMs: number): WorkflowState {
  return { name, id, ...workflow, status: 'running', run: 1, createdMs: nowMs, runStartedMs: nowMs, waits: [] };
}

export function changedState(state: WorkflowState, change: WorkflowChange, nowMs: number): WorkflowState {
  if (change.status === 'continued') {
    const { input, seed, version } = change;
    const next = { run: state.run + 1, runStartedMs: nowMs, status: 'running', waits: [] } as const;
    return { ...state, input, seed, version, ...next };
  }
  if ('waits' in change) return { ...state, status: change.status, waits: change.waits, error: change.error };
  const { status, result, error } = change;
  return { ...state, status, result, error, waits: [], endedMs: nowMs };
}

/** Whether a write ends the lease: an end does, a release unless something came in behind what was seen. */
export function endsLease(
  { status }: WorkflowState,
  release: { readonly seen: number } | undefined,
  hasEventBehind: (seq: number) => boolean,
): boolean {
  return hasEnded(status) || (release !== undefined && !hasEventBehind(release.seen));
}

/** Whether a workflow is as somebody knows it: an id that was used again has another seed. */
export function isStill(known: KnownWorkflow | undefined, { seed, writeVersion }: KnownWorkflow): boolean {
  return known?.seed === seed && known.writeVersion === writeVersion;
}
