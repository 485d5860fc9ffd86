// The seam to the place where workflows are kept: what makes them outlive the process. Everything of one workflow is under
// its key, name and id: what happened to it (inbox), what it has done (journal), when it has to be woken (wake time), what it
// wants sent (outgoing messages), and who works on it (lease).
//
// Each call is atomic: it happens whole or not at all, and calls of one key take effect one after the other. A call that
// resolved survives whatever the store is made to survive; one that rejects may have happened, and may be repeated.
// What a reader gets is its own: what is done to it changes nothing in the store. All values are plain data that survives JSON.
//
// The lease. Whoever works on a workflow takes it (`acquire`) and gets an epoch, higher than any before it for that key. A
// write is accepted only under the newest epoch and with the version the writer has seen last, whatever the clocks say: an
// owner that stood still, or was cut off, and comes back after another has taken over changes nothing.
// Time is the caller's (`nowMs`); a store that several machines share may go by its own.
import type { RecordedMessage } from '../core/recorded-outcome.js';
import type {
  JournalEntry,
  JournalError,
  WorkflowEndStatus,
  WorkflowStatus,
  WorkflowWait,
} from '../core/workflow-journal.js';
import type { WorkflowCount } from './workflow-progress.js';

export interface WorkflowKey {
  readonly name: string;
  readonly id: string;
}

/** Who waits for the end of a child. `at`: which command of which `run` of the parent. */
export interface WorkflowParent extends WorkflowKey {
  readonly run: number;
  readonly at: number;
}

/** A workflow as it begins. */
export interface NewWorkflow {
  /** Of the definition. */
  readonly version: number;
  readonly input?: unknown;
  /** For what is random in it. */
  readonly seed: string;
  /** To find it by. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly parent?: WorkflowParent | undefined;
  /** What telemetry goes on from, such as a trace context. */
  readonly context?: Readonly<Record<string, string>> | undefined;
}

/** Something that happens to a workflow. */
export interface WorkflowEvent {
  /** The same on every repeat: the second one is not kept, as long as the first one's id is not forgotten. Unique for the workflow. */
  readonly eventId: string;
  readonly kind: 'signal' | 'cancel' | 'terminate' | 'resume' | 'child-ended' | 'step-done';
  /** Of the signal. */
  readonly name?: string | undefined;
  /** Of the signal; of an ended child, and of a step that ran elsewhere, how it ended. */
  readonly payload?: unknown;
  /** What telemetry knows it by, such as a trace context. */
  readonly context?: Readonly<Record<string, string>> | undefined;
}

export interface InboxEvent extends WorkflowEvent {
  /** Its place in the inbox: higher than all that came before it, never 0. */
  readonly seq: number;
  readonly atMs: number;
}

/** What is known of a workflow at a glance. */
export interface WorkflowRecord extends WorkflowKey {
  readonly version: number;
  readonly status: WorkflowStatus;
  /** 1, and one more each time it continued as new. */
  readonly run: number;
  readonly input?: unknown;
  readonly seed: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly parent?: WorkflowParent | undefined;
  /** As it began. */
  readonly context?: Readonly<Record<string, string>> | undefined;
  readonly createdMs: number;
  /** When the run began. */
  readonly runStartedMs: number;
  readonly endedMs?: number | undefined;
  /** Of a completed one. */
  readonly result?: unknown;
  /** Why it failed, is stuck, or is blocked. */
  readonly error?: JournalError | undefined;
  /** What it waits for, as of its last write: the first 100 of it. */
  readonly waits: readonly WorkflowWait[];
  /** When it is to be looked at; absent when only an event can do that. */
  readonly wakeMs?: number | undefined;
}

/** All that is needed to go on with a workflow. */
export interface WorkflowSnapshot {
  readonly record: WorkflowRecord;
  /** Of the current run, in order. */
  readonly journal: readonly JournalEntry[];
  /** What was not consumed yet, in order of arrival. */
  readonly inbox: readonly InboxEvent[];
}

export interface AcquiredWorkflow extends WorkflowSnapshot {
  readonly epoch: number;
  /** What the next write has to expect. */
  readonly writeVersion: number;
}

export interface LeaseRequest {
  /** A text for this process. */
  readonly owner: string;
  readonly nowMs: number;
  readonly leaseMs: number;
}

export interface AcquireRequest extends LeaseRequest {
  /** What the owner has of it: the journal of the run that has this seed, at this version. @default nothing */
  readonly known?: KnownWorkflow | undefined;
}

export interface KnownWorkflow {
  readonly seed: string;
  readonly writeVersion: number;
}

export interface OutgoingRequest extends LeaseRequest {
  readonly limit: number;
  /** None of these, whoever has them: the relay cannot send what they have now. @default all of them */
  readonly exceptWorkflows?: readonly WorkflowKey[] | undefined;
}

/** One message that follows from a workflow. */
export interface OutgoingRow {
  /** Unique; the message carries it as `pulsework-message-id`, so that receivers recognise a repeat. */
  readonly messageId: string;
  readonly message: RecordedMessage;
}

export interface TakenOutgoing extends OutgoingRow {
  readonly key: WorkflowKey;
}

/** How the workflow stands after a write. */
export type WorkflowChange =
  | {
      readonly status: 'running' | 'blocked' | 'stuck';
      readonly waits: readonly WorkflowWait[];
      readonly error?: JournalError | undefined;
    }
  | {
      readonly status: WorkflowEndStatus;
      readonly result?: unknown;
      readonly error?: JournalError | undefined;
    }
  /**
   * The journal begins anew, as does the method; what is in the inbox stays. Ids of consumed events that came before the newest
   * 1,000 of them are forgotten, by this write and by no other one that leaves the workflow going: it may do so for ever.
   */
  | { readonly status: 'continued'; readonly input?: unknown; readonly seed: string; readonly version: number };

export interface WorkflowWrite {
  readonly epoch: number;
  readonly expectedVersion: number;
  readonly nowMs: number;
  /** Added to the journal. */
  readonly entries: readonly JournalEntry[];
  /** `seq` of events that are done with. */
  readonly consumed: readonly number[];
  readonly outgoing: readonly OutgoingRow[];
  readonly change: WorkflowChange;
  /**
   * Give the lease up and be woken at `wakeMs` (absent: by an event only), unless an event that is not consumed came in
   * behind `seen`. An end always gives it up. @default the lease is kept
   */
  readonly release?: { readonly seen: number; readonly wakeMs?: number | undefined } | undefined;
}

export interface WriteAnswer {
  readonly writeVersion: number;
  /** False with `release`: there is something new in the inbox, and the lease is still held. */
  readonly released: boolean;
}

export interface WorkflowFilter {
  readonly name?: string | undefined;
  readonly status?: WorkflowStatus | undefined;
  /** All of these. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  /** Epoch milliseconds, this one included. */
  readonly createdFromMs?: number | undefined;
  /** Epoch milliseconds, this one not included. */
  readonly createdBeforeMs?: number | undefined;
  /** The last one of an earlier answer, to go on behind it. */
  readonly after?: Pick<WorkflowRecord, 'createdMs' | 'name' | 'id'> | undefined;
  readonly limit: number;
}

export interface DueQuestion {
  /** Only workflows of these names. */
  readonly names: readonly string[];
  /** Those whose wake time is not later than this. */
  readonly beforeMs: number;
  readonly limit: number;
}

export interface DueWorkflow extends WorkflowKey {
  readonly wakeMs: number;
}

/**
 * Every call is refused before `open` with ILLEGAL_STATE and after the last `close` with ALREADY_CLOSED.
 * @throws PulseworkError STORE_LOCKED, STORE_FULL, STORE_NOT_WRITABLE: nothing has changed; STORE_FAILED, STORE_UNREACHABLE: it may
 *   have happened.
 */
export interface WorkflowStore {
  /** For logs and errors, e.g. `sqlite /var/lib/billing/workflows.db`. */
  readonly name: string;
  /** Makes the place where there is none. Each `open` is undone by one `close`. */
  open(): Promise<void>;
  /** More calls than of `open` are allowed. */
  close(): Promise<void>;

  /**
   * Begins a workflow, to be woken at once; signals that were kept for its key become its own. False, and nothing changes,
   * when there is one of that key already, ended or not.
   */
  start(key: WorkflowKey, workflow: NewWorkflow, nowMs: number): Promise<boolean>;
  /**
   * Puts an event into the inbox and wakes the workflow: now, or at the end of the lease of whoever holds it and should see it. `known`: it has had an event of that id. `ended`: it has ended, the
   * event is not kept. Where there is no such workflow, a signal is kept for `keepMs` (`added`), anything else is
   * not (`unknown`).
   */
  append(
    key: WorkflowKey,
    event: WorkflowEvent,
    times: { readonly nowMs: number; readonly keepMs: number },
  ): Promise<'added' | 'known' | 'ended' | 'unknown'>;

  /**
   * Takes a workflow that has not ended and whose lease is free or over, and reads it. Undefined when there is none to
   * take. The wake time is then the end of the lease: should the owner die, the scan finds it. The journal may be left out
   * where it is still as `known` says.
   */
  acquire(key: WorkflowKey, lease: AcquireRequest): Promise<AcquiredWorkflow | undefined>;
  /**
   * Extends the lease from now on, also one that is over while nobody else took it. Undefined, and nothing changes, when
   * `epoch` is not the newest. @returns the `seq` of the newest event that is not consumed, 0 when there is none
   */
  renew(
    key: WorkflowKey,
    epoch: number,
    lease: Omit<LeaseRequest, 'owner'>,
  ): Promise<{ readonly inboxSeq: number } | undefined>;
  /** Events not consumed behind `seq`, in order. */
  inbox(key: WorkflowKey, afterSeq: number): Promise<readonly InboxEvent[]>;
  /**
   * The one way to change a workflow. Whoever repeats a write that happened (same epoch and `expectedVersion`) gets the same
   * answer, and nothing happens twice.
   * @throws PulseworkError WORKFLOW_LEASE_LOST when `epoch` is not the newest, the version is another, or it has ended.
   */
  write(key: WorkflowKey, write: WorkflowWrite): Promise<WriteAnswer>;

  /** Workflows whose wake time has come or comes soon, the earliest first; of one that is held, at the end of its lease. */
  due(question: DueQuestion): Promise<readonly DueWorkflow[]>;

  /**
   * Messages to be sent, in the order in which they were written, for `owner` alone until its time is over. None of a
   * workflow of which another owner has an earlier one: what one workflow sends stays in order.
   */
  takeOutgoing(request: OutgoingRequest): Promise<readonly TakenOutgoing[]>;
  /** They were sent: forget them. Ids that are unknown are no error. */
  sent(messageIds: readonly string[]): Promise<void>;

  /** Undefined when there is none of that key. */
  get(key: WorkflowKey): Promise<WorkflowRecord | undefined>;
  /** To read, without a lease. Undefined when there is none. */
  read(key: WorkflowKey): Promise<WorkflowSnapshot | undefined>;
  /** In the order in which they began; those of one moment by name and id. */
  list(filter: WorkflowFilter): Promise<readonly WorkflowRecord[]>;
  /** How many of these names have not ended, by name and status; none with 0. */
  count(names: readonly string[]): Promise<readonly WorkflowCount[]>;
  /** Forgets workflows that ended before `endedBeforeMs`, and signals whose time is over. @returns how many workflows */
  purge(times: { readonly nowMs: number; readonly endedBeforeMs: number; readonly limit: number }): Promise<number>;
}

/** Methods that change something, and those that only look: what a crash test cuts. */
export const WORKFLOW_STORE_METHODS = [
  'start',
  'append',
  'acquire',
  'renew',
  'inbox',
  'write',
  'due',
  'takeOutgoing',
  'sent',
  'get',
  'read',
  'list',
  'count',
  'purge',
] as const satisfies readonly (keyof WorkflowStore)[];
