// Steps whose work a handler does, in this process or in any other: what is sent for an attempt, and what an answer makes of it. The
// work is sent with the write that records the attempt, so that there is never one without the other; and whoever waits for the
// answer costs a row.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { durationText } from '../core/duration-text.js';
import type { MessageOptions } from '../core/message.js';
import type { Topic } from '../core/topic.js';
import type { JournalEntry } from '../core/workflow-journal.js';
import type { OutgoingRow } from '../ports/workflow-store.js';
import type { Command } from './command.js';
import { commandText } from './command.js';
import type { Execution } from './execution.js';
import type { OutgoingRows } from './outgoing-rows.js';
import { idempotencyKeyOf, messageIdOf } from './workflow-ids.js';
import { checkedValue } from './planned-workflow.js';
import type { StepAddress, StepDone } from './step-address.js';
import { STEP_PROPERTY } from './step-address.js';
import type { StepFacts } from './step-end.js';
import { attemptFailed, gaveUp } from './step-end.js';
import { WorkflowError, recordedCause } from './workflow-errors.js';

export interface RemoteWork {
  readonly topic: Topic<never>;
  /** The payload: code of the user where it undoes something. */
  readonly input: () => unknown;
  readonly message: MessageOptions | undefined;
  readonly result: StandardSchemaV1 | undefined;
}

/** The next attempt. One whose message can never be sent, or not be made, gives up at once. */
export async function remoteAttempt(
  execution: Execution,
  command: Command,
  { topic, input, message }: RemoteWork,
  rows: OutgoingRows,
  atMs: number,
): Promise<{ readonly entry: JournalEntry; readonly outgoing: readonly OutgoingRow[] }> {
  const { name, id, run } = execution.record;
  const { at, name: step } = command;
  const attempt = command.attempts + 1;
  const about = { name, id, run, at, step, attempt, idempotencyKey: idempotencyKeyOf(execution, at) };
  try {
    const payload = input();
    const address: StepAddress = { v: 1, replyTo: rows.replyTo(name), ...about };
    const properties = { ...message?.properties, [STEP_PROPERTY]: JSON.stringify(address) };
    const options = { key: id, ...message, properties };
    const row = await rows.message({ topic, payload, options }, messageIdOf(execution, `${at}/${attempt}`));
    return { entry: { kind: 'attempt', at, attempt, atMs, sent: true }, outgoing: [row] };
  } catch (error) {
    return { entry: gaveUp(command, error, atMs), outgoing: [] };
  }
}

/**
 * What an answer makes of its step; undefined where it changes nothing. A result counts whichever attempt it is of: what was done
 * is done. A failure counts for the attempt that is under way alone.
 */
export async function answeredEntry(
  done: StepDone,
  execution: Execution,
  facts: StepFacts,
): Promise<JournalEntry | undefined> {
  const { run, at, attempt, value } = done;
  const command = execution.commands[at];
  const remote = command?.step?.remote;
  if (run !== execution.record.run || command?.state !== 'open' || remote === undefined) return undefined;
  const isCurrent = command.isSent && attempt === command.attempts;
  const checked = done.error === undefined ? await checkedValue(remote.result, value) : undefined;
  if (checked !== undefined && 'value' in checked)
    return { kind: 'completed', at, atMs: facts.nowMs, ...(value !== undefined && { value }) };
  if (!isCurrent) return undefined;
  return checked === undefined ? failure(command, done, facts) : mismatch(command, checked.problem, facts);
}

function failure(command: Command, { error, retry = true }: StepDone, facts: StepFacts): JournalEntry {
  const cause = error === undefined ? undefined : recordedCause(error);
  if (retry === false) return gaveUp(command, cause, facts.nowMs);
  return attemptFailed(command, cause, facts, typeof retry === 'number' ? retry : undefined);
}

function mismatch(command: Command, problem: string, facts: StepFacts): JournalEntry {
  const rule = `the result of ${commandText(command)} does not match its schema: ${problem}`;
  return attemptFailed(command, new WorkflowError('WORKFLOW_VALUE_INVALID', rule), facts, undefined);
}

/** The time limit of an attempt is over. */
export function unansweredEntry(command: Command, facts: StepFacts): JournalEntry {
  const limit = durationText(command.step?.timeoutMs ?? 0);
  const message = `${commandText(command)} had no answer within ${limit}`;
  const error = new WorkflowError('WORKFLOW_STEP_TIMED_OUT', message, { step: command.name });
  return attemptFailed(command, error, facts, undefined);
}
