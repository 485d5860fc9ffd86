// The shape of a case of workflow stores, and what cases begin with.
import type { JournalEntry } from '../core/workflow-journal.js';
import type {
  AcquiredWorkflow,
  NewWorkflow,
  WorkflowEvent,
  WorkflowKey,
  WorkflowStore,
  WorkflowWrite,
} from '../ports/workflow-store.js';

export interface WorkflowStoreCase {
  readonly title: string;
  /** Rejects with a sentence when the store does not hold to it. @param store open, and holding nothing */
  readonly run: (store: WorkflowStore) => Promise<void>;
}

export const KEY: WorkflowKey = { name: 'fulfil', id: 'A-1' };
export const NEW: NewWorkflow = { version: 1, input: { order: 'A-1' }, seed: 'seed', attributes: { customer: 'ann' } };
export const KEEP = { nowMs: 0, keepMs: 1_000 };
export const LEASE = { owner: 'one', nowMs: 0, leaseMs: 1_000 };

export function signal(eventId: string, payload?: unknown): WorkflowEvent {
  return { eventId, kind: 'signal', name: 'packed', payload };
}

export function entry(at: number): JournalEntry {
  return { kind: 'command', at, command: 'step', name: `step-${at}`, atMs: 0 };
}

/** A write of whoever acquired it, that changes nothing but the version. */
export function writeOf(
  { epoch, writeVersion }: Pick<AcquiredWorkflow, 'epoch' | 'writeVersion'>,
  parts: Partial<WorkflowWrite> = {},
): WorkflowWrite {
  const change = { status: 'running', waits: [] } as const;
  const none = { entries: [], consumed: [], outgoing: [] };
  return { epoch, expectedVersion: writeVersion, nowMs: 0, ...none, change, ...parts };
}

/** A workflow that is there, and held. */
export async function begun(store: WorkflowStore, key: WorkflowKey = KEY, nowMs = 0): Promise<AcquiredWorkflow> {
  await store.start(key, NEW, nowMs);
  const acquired = await store.acquire(key, { ...LEASE, nowMs });
  if (acquired === undefined) throw new Error('a workflow that was just begun could not be acquired');
  return acquired;
}
