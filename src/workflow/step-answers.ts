// What a handler that does the work of a workflow's step says: its answer is a message that goes with its outcome, so that it is
// sent and confirmed before the work is acknowledged.
import type { Delivery } from '../core/delivery.js';
import { ConfigurationError, describeValue, isError } from '../core/errors.js';
import type { OutgoingMessage } from '../core/message.js';
import { OptionChecker, isDurationMs } from '../core/options.js';
import type { Outcome, Poison, Retry, RetryAfter, Success } from '../core/outcome.js';
import { poison, retry, retryAfter, success } from '../core/outcome.js';
import type { Topic } from '../core/topic.js';
import type { JournalError } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { WorkflowKey } from '../ports/workflow-store.js';
import type { WorkflowReference } from './definition.js';
import { referencedName } from './definition.js';
import { eventTopic } from './event-message.js';
import { plainValue } from './plain-value.js';
import type { StepAddress, StepDone } from './step-address.js';
import { STEP_PROPERTY, stepAddress } from './step-address.js';
import { messageIdOf } from './workflow-ids.js';

type Asked = Pick<Delivery, 'properties'>;

/** The step that a delivery is work of. */
export interface RemoteStepCall {
  readonly workflow: WorkflowKey;
  /** Its name. */
  readonly step: string;
  /** The same in every attempt and every repeat of this step, and of no other step. */
  readonly idempotencyKey: string;
  /** Of the step, counted by the workflow: 1 in the first one. */
  readonly attempt: number;
}

export interface StepFailureOptions {
  /**
   * Whether it is tried again: `true` by the policy of the step, a number after so many milliseconds, both as an attempt that
   * failed; `false` gives the step up at once. @default true
   */
  readonly retry?: boolean | number | undefined;
}

/** Undefined for a delivery that no workflow sent. @throws PulseworkError WORKFLOW_VALUE_INVALID */
export function remoteStep(delivery: Asked): RemoteStepCall | undefined {
  const address = addressOf(delivery);
  if (address === undefined) return undefined;
  const { name, id, step, idempotencyKey, attempt } = address;
  return { workflow: { name, id }, step, idempotencyKey, attempt };
}

/**
 * The work is done, and `value` is the result of the step; for a delivery that no workflow sent it is `success(...messages)`. The
 * first answer of an attempt counts, whatever a repeat says.
 * @param value plain data that survives JSON. @param messages that follow from it besides
 * @throws WorkflowError WORKFLOW_VALUE_INVALID
 */
export function stepResult(delivery: Asked, value?: unknown, ...messages: readonly OutgoingMessage[]): Success {
  const address = addressOf(delivery);
  if (address === undefined) return success(...messages);
  const plain = plainValue(value, `the result of step ${JSON.stringify(address.step)}`);
  return success(answer(address, plain === undefined ? {} : { value: plain }), ...messages);
}

/**
 * The step's attempt has failed, and the workflow is told so: from there on its policy counts, not that of the handler, whose own
 * work is done. For a delivery that no workflow sent it is `retry(reason)`, `retryAfter(ms, reason)` or `poison(reason)`.
 * A handler that retries by itself (`retry`, or by throwing) says nothing to the workflow, which waits; nor does a dead letter.
 * @throws ConfigurationError
 */
export function stepFailure(
  delivery: Asked,
  reason: string | Error,
  options: StepFailureOptions = {},
): Success | Retry | RetryAfter | Poison {
  checkFailure(reason, options);
  const { retry: again = true } = options;
  const address = addressOf(delivery);
  if (address === undefined) return outcomeOf(reason, again);
  const error: JournalError = isError(reason) ? journalError(reason) : { name: 'Error', message: reason };
  return { ...success(answer(address, { error, retry: again })), askedAgain: again !== false };
}

function checkFailure(reason: unknown, options: StepFailureOptions): void {
  const check = new OptionChecker('stepFailure');
  if (typeof reason !== 'string' && !isError(reason))
    check.problem(`"reason" must be a text or an Error, got ${describeValue(reason)}`);
  check.options(options, ['retry']);
  check.throwIfAny();
  const { retry: again } = options;
  if (again !== undefined && typeof again !== 'boolean' && !isDurationMs(again))
    check.problem(`"retry" must be true, false or milliseconds, got ${describeValue(again)}`);
  check.throwIfAny();
}

/** The topic of a workflow's events, to which the answers go: for `publishes` of the handlers that answer. @throws ConfigurationError */
export function workflowEvents(workflow: WorkflowReference): Topic<never> {
  const name = referencedName(workflow);
  if (name !== undefined) return eventTopic(name);
  const what = describeValue(workflow);
  throw new ConfigurationError([`workflowEvents() takes a workflow's name, definition or class, got ${what}`]);
}

function outcomeOf(reason: string | Error, again: boolean | number): Extract<Outcome, Retry | RetryAfter | Poison> {
  if (typeof again === 'number') return retryAfter(again, reason);
  return again ? retry(reason) : poison(reason);
}

function addressOf({ properties }: Asked): StepAddress | undefined {
  const text = properties[STEP_PROPERTY];
  return text === undefined ? undefined : stepAddress(text);
}

/** Under one id, however often the handler runs: the workflow takes the first. */
function answer(
  { replyTo, name, id, run, at, attempt }: StepAddress,
  end: Pick<StepDone, 'value' | 'error' | 'retry'>,
): OutgoingMessage {
  const payload: StepDone = { run, at, attempt, ...end };
  const eventId = messageIdOf({ record: { name, id, run } }, `${at}/${attempt}/done`);
  return { ...eventTopic(name).message({ v: 1, id, kind: 'step-done', eventId, payload }, { key: id }), replyTo };
}
