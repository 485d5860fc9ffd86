// Ids by which others recognise what a workflow asks for: the same in every repeat, and of nothing else.
import type { WorkflowKey, WorkflowRecord } from '../ports/workflow-store.js';

interface Run {
  readonly record: Pick<WorkflowRecord, 'name' | 'id' | 'run'>;
}

/** Of a workflow among those of this process. */
export function keyText({ name, id }: WorkflowKey): string {
  return JSON.stringify([name, id]);
}

/** Of a message. @param at the command, and which message of it where there are several */
export function messageIdOf({ record: { name, id, run } }: Run, at: number | string): string {
  return `workflow/${name}/${withoutSlashes(id)}/${run}/${at}`;
}

/** So that no other id, with other numbers behind it, is the same text. */
function withoutSlashes(id: string): string {
  return id.replaceAll('%', '%25').replaceAll('/', '%2F');
}

/** Of a step, or of its compensation. @param at the command */
export function idempotencyKeyOf({ record: { name, id, run } }: Run, at: number): string {
  return `${name}/${id}/${run}/${at}`;
}
