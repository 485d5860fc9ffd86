// What a workflow and a handler that does the work of a step write to each other: an address with the work, an answer to it. JSON
// that any service can read and write.
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import { isDurationMs } from '../core/options.js';
import { fullTopicName } from '../core/topic-name.js';
import type { JournalError } from '../core/workflow-journal.js';

/** Of a message that is work of a step: a `StepAddress` as JSON. */
export const STEP_PROPERTY = 'pulsework-workflow-step';

/** Where the answer goes, and what the work is a part of. */
export interface StepAddress {
  readonly v: 1;
  /** Full name of the topic of the workflow's events. */
  readonly replyTo: string;
  /** Of the workflow. */
  readonly name: string;
  readonly id: string;
  readonly run: number;
  readonly at: number;
  readonly step: string;
  readonly attempt: number;
  readonly idempotencyKey: string;
}

/** The payload of an event `step-done`. Without `error` it is a result. */
export interface StepDone {
  readonly run: number;
  readonly at: number;
  readonly attempt: number;
  readonly value?: unknown;
  readonly error?: JournalError | undefined;
  /** False: not again. A number: after so many milliseconds. @default true: by the step's policy */
  readonly retry?: boolean | number | undefined;
}

export function isStepDone(value: unknown): value is StepDone {
  const { run, at, attempt, error, retry } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof run !== 'number' || typeof at !== 'number' || typeof attempt !== 'number') return false;
  if (error !== undefined && !isJournalError(error)) return false;
  return retry === undefined || typeof retry === 'boolean' || isDurationMs(retry);
}

export function isJournalError(value: unknown): value is JournalError {
  const { name, message } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof name === 'string' && typeof message === 'string';
}

/** @throws PulseworkError WORKFLOW_VALUE_INVALID for a text that no workflow wrote */
export function stepAddress(text: string): StepAddress {
  try {
    const address = JSON.parse(text) as Readonly<Partial<Record<keyof StepAddress, unknown>>>;
    const { v, replyTo, id } = address;
    if (v === 1 && typeof replyTo === 'string' && typeof id === 'string' && isStepDone(address)) {
      fullTopicName(replyTo);
      return address as unknown as StepAddress;
    }
    throw new TypeError(`it has version ${describeValue(v)}, or fields are missing`);
  } catch (error) {
    const rule = `the property ${STEP_PROPERTY} is none that a workflow wrote: ${toError(error).message}`;
    throw new PulseworkError('WORKFLOW_VALUE_INVALID', rule);
  }
}
