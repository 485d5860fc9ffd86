// One workflow in the hand of who started it or looks after it.
import type { JournalEntry, WorkflowStatus } from '../core/workflow-journal.js';
import { hasEnded } from '../core/workflow-journal.js';
import type { ErrorCode } from '../core/errors.js';
import { PulseworkError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { WorkflowProgress } from '../ports/workflow-progress.js';
import type { WorkflowKey, WorkflowRecord } from '../ports/workflow-store.js';
import { checkedValue } from './planned-workflow.js';
import type { WorkflowMachine } from './workflow-machine.js';
import { WorkflowError, keyOf, recordedCause } from './workflow-errors.js';

/** A workflow's whole story, as plain data: for people, and for `replayHistory` of `pulsework/testing`. */
export interface WorkflowHistory {
  readonly format: 'pulsework-workflow-history';
  readonly v: 1;
  readonly record: WorkflowRecord;
  /** Of its current run. */
  readonly journal: readonly JournalEntry[];
}

export interface ResultOptions {
  /** Milliseconds to wait at most. @default without end */
  readonly timeoutMs?: number | undefined;
}

export interface SignalSendOptions {
  /** The same on a repeat: the workflow gets it once. @default a new one each time */
  readonly eventId?: string | undefined;
}

export interface WorkflowHandle<Out = unknown> {
  readonly name: string;
  readonly id: string;
  /**
   * What the workflow ends with, whenever that is: at once where it ends in this process, else within a scan interval.
   * @throws WorkflowError WORKFLOW_FAILED, WORKFLOW_CANCELLED, WORKFLOW_TERMINATED, WORKFLOW_NOT_FOUND when it was
   *   forgotten before this was told of its end; PulseworkError CALL_TIMED_OUT after
   *   `timeoutMs`, ALREADY_CLOSED when the runtime closes first
   */
  result(options?: ResultOptions): Promise<Out>;
  signal(name: string, payload?: unknown, options?: SignalSendOptions): Promise<void>;
  query(name: string): Promise<unknown>;
  cancel(): Promise<void>;
  terminate(): Promise<void>;
  resume(): Promise<void>;
  /** Undefined until its start has arrived. */
  describe(): Promise<WorkflowRecord | undefined>;
  /** @throws WorkflowError WORKFLOW_NOT_FOUND */
  history(): Promise<WorkflowHistory>;
  /** Its history as text for people, see `workflowTimeline`. @throws WorkflowError WORKFLOW_NOT_FOUND */
  timeline(): Promise<string>;
  /**
   * Its story from its beginning to its end, whichever processes work on it, and on as it goes: each at once where that happens
   * here, else within a scan interval. Ends with the workflow, with `signal`, and with the runtime.
   */
  events(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterableIterator<WorkflowProgress>;
}

/** Waits for the end. */
export async function resultOf(
  machine: WorkflowMachine,
  key: WorkflowKey,
  options: ResultOptions = {},
): Promise<unknown> {
  const check = new OptionChecker('result');
  check.options(options, ['timeoutMs']);
  check.durationMs('timeoutMs', options.timeoutMs);
  check.throwIfAny();
  const { clock } = machine;
  let wasThere = false;
  const untilMs = options.timeoutMs === undefined ? Infinity : clock.elapsedMs() + options.timeoutMs;
  for (;;) {
    const pause = pauseUntilEnd(machine, key, Math.min(untilMs, clock.elapsedMs() + machine.scanIntervalMs));
    const record = await machine
      .store('reading a workflow', (store) => store.get(key))
      .catch((error: unknown) => pause.failed(error));
    if (record !== undefined && hasEnded(record.status)) {
      pause.cancel();
      return ended(machine, record, record.status);
    }
    if (record === undefined && wasThere) {
      pause.cancel();
      const message = `workflow ${keyOf(key)} was forgotten: it ended more than \`retentionMs\` ago`;
      throw new WorkflowError('WORKFLOW_NOT_FOUND', message, { workflow: key });
    }
    wasThere = record !== undefined;
    if (clock.elapsedMs() >= untilMs) {
      pause.cancel();
      throw new PulseworkError('CALL_TIMED_OUT', `workflow ${keyOf(key)} did not end within ${options.timeoutMs} ms`);
    }
    if ((await pause.over) === 'closed')
      throw new PulseworkError('ALREADY_CLOSED', `workflow ${keyOf(key)} goes on elsewhere: the runtime is closed`);
  }
}

interface Pause {
  readonly over: Promise<'look' | 'closed'>;
  cancel(): void;
  failed(error: unknown): never;
}

/** Set up before the store is asked: an end between the two is not missed. */
function pauseUntilEnd(machine: WorkflowMachine, { name, id }: WorkflowKey, untilMs: number): Pause {
  let settle: (why: 'look' | 'closed') => void = () => undefined;
  const over = new Promise<'look' | 'closed'>((resolve) => (settle = resolve));
  const unwatch = machine.watch((ended) => {
    if (ended === undefined) settle('closed');
    else if (ended.name === name && ended.id === id) settle('look');
  });
  const timer = machine.clock.setTimer(Math.max(0, untilMs - machine.clock.elapsedMs()), () => settle('look'));
  const cancel = (): void => {
    unwatch();
    timer.cancel();
  };
  void over.then(cancel);
  return {
    over,
    cancel,
    failed: (error) => {
      cancel();
      throw error;
    },
  };
}

async function ended(machine: WorkflowMachine, record: WorkflowRecord, status: WorkflowStatus): Promise<unknown> {
  const { name, id, result, error = { name: 'Error', message: status } } = record;
  if (status === 'completed') {
    const checked = await checkedValue(machine.workflowFor(record)?.options.result, result);
    if ('value' in checked) return checked.value;
    const message = `workflow ${keyOf(record)}: its result does not match the schema now: ${checked.problem}`;
    throw new WorkflowError('WORKFLOW_VALUE_INVALID', message, { workflow: { name, id } });
  }
  const codes: Readonly<Partial<Record<WorkflowStatus, ErrorCode>>> = {
    cancelled: 'WORKFLOW_CANCELLED',
    terminated: 'WORKFLOW_TERMINATED',
  };
  const code = codes[status] ?? 'WORKFLOW_FAILED';
  const about = { workflow: { name, id }, cause: recordedCause(error) };
  throw new WorkflowError(code, `workflow ${keyOf(record)} ${wordFor(status)}: ${error.message}`, about);
}

function wordFor(status: WorkflowStatus): string {
  return status === 'failed' ? 'failed' : `was ${status}`;
}
