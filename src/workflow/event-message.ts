// Events of workflows as messages: one topic per workflow name, keyed by the workflow's id, JSON that any service can write.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describeValue } from '../core/errors.js';
import type { Topic } from '../core/topic.js';
import { topic } from '../core/topic.js';
import type { WorkflowEvent, WorkflowParent } from '../ports/workflow-store.js';
import { isWorkflowName } from './definition.js';
import { isJournalError, isStepDone } from './step-address.js';

export const EVENT_SUBSCRIPTION = 'pulsework-workflows';

/** How a child ended, for its parent. */
export interface ChildEnd {
  readonly run: number;
  readonly at: number;
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly code?: string | undefined } | undefined;
}

/** The JSON of a message on the topic of a workflow. */
export type EventMessage = {
  readonly v: 1;
  /** Of the workflow. */
  readonly id: string;
} & (
  | {
      readonly kind: 'start';
      /** Of the definition by which the input was checked. @default the newest where it is read */
      readonly version?: number | undefined;
      readonly input?: unknown;
      readonly attributes?: Readonly<Record<string, string>> | undefined;
      readonly parent?: WorkflowParent | undefined;
    }
  | (WorkflowEvent & {
      /** Of a cancel: it is for the child that this one has started, for nobody else of that id. */
      readonly parent?: WorkflowParent | undefined;
    })
);

/** @param name of the workflow */
export function eventTopicName(name: string): string {
  return `pulsework-workflow-${name}`;
}

export function eventTopic(name: string): Topic<EventMessage, EventMessage> {
  return topic(eventTopicName(name), { payload: eventSchema });
}

const KINDS: readonly unknown[] = ['start', 'signal', 'cancel', 'terminate', 'resume', 'child-ended', 'step-done'];

/** Checks what anybody may have written. */
export const eventSchema: StandardSchemaV1<EventMessage, EventMessage> = {
  '~standard': {
    version: 1,
    vendor: 'pulsework',
    validate: (value) => {
      const problems = problemsOf(value);
      if (problems.length > 0) return { issues: problems.map((message) => ({ message })) };
      return { value: value as EventMessage };
    },
  },
};

function problemsOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [`an event must be an object, got ${describeValue(value)}`];
  const { v, id, kind, eventId, name, version, attributes, payload, parent } = value as Readonly<
    Record<string, unknown>
  >;
  const problems: string[] = [];
  if (v !== 1) problems.push(`"v" must be 1, got ${describeValue(v)}`);
  if (!isText(id)) problems.push(`"id" must be a text that is not empty, got ${describeValue(id)}`);
  if (!KINDS.includes(kind)) problems.push(`"kind" must be one of ${KINDS.join(', ')}, got ${describeValue(kind)}`);
  else if (kind !== 'start' && !isText(eventId)) problems.push('"eventId" must be a text that is not empty');
  if (kind === 'signal' && !isText(name)) problems.push('"name" of a signal must be a text that is not empty');
  return [...problems, ...originProblems({ version, attributes, parent }), ...payloadProblems(kind, payload)];
}

function originProblems({ version, attributes, parent }: Readonly<Record<string, unknown>>): readonly string[] {
  const problems: string[] = [];
  if (version !== undefined && !Number.isSafeInteger(version))
    problems.push(`"version" must be a whole number, got ${describeValue(version)}`);
  if (attributes !== undefined && !areTexts(attributes)) problems.push('"attributes" must be an object of texts');
  if (parent !== undefined && !isParent(parent))
    problems.push('"parent" must have the name, id, run and at of a workflow');
  return problems;
}

function payloadProblems(kind: unknown, payload: unknown): readonly string[] {
  if (kind === 'child-ended' && !isChildEnd(payload))
    return ['"payload" of child-ended must have run and at, and value, or error { name, message }'];
  if (kind !== 'step-done' || isStepDone(payload)) return [];
  return ['"payload" of step-done must have run, at, attempt, and value, or error { name, message } and retry'];
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isChildEnd(value: unknown): value is ChildEnd {
  const { run, at, error } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof run === 'number' && typeof at === 'number' && (error === undefined || isJournalError(error));
}

function isParent(value: unknown): value is WorkflowParent {
  const { name, id, run, at } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return isWorkflowName(name) && isText(id) && typeof run === 'number' && typeof at === 'number';
}

export function areTexts(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((text) => typeof text === 'string');
}
