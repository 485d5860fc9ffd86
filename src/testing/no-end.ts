// Why a workflow of a test does not end, as its author reads it: what it waits for, who has to bring that, and what was warned of.
import type { WorkflowWait } from '../core/workflow-journal.js';
import type { LogFields, Logger } from '../ports/logger.js';
import type { WorkflowKey, WorkflowRecord } from '../ports/workflow-store.js';
import { commandText } from '../workflow/command.js';
import { keyOf } from '../workflow/workflow-errors.js';

/** The last warning of a process. The cause of what does not happen often stands in the log only, which is silent in tests. */
export class LastWarning {
  text: string | undefined;

  /** `logger`, overheard. */
  of(logger: Logger): Logger {
    const heard = (level: 'warn' | 'error') => (message: string, fields?: LogFields) => {
      this.text = textOf(message, fields);
      logger[level](message, fields);
    };
    return {
      isEnabled: (level) => level === 'warn' || level === 'error' || (logger.isEnabled?.(level) ?? true),
      debug: (message, fields) => logger.debug(message, fields),
      info: (message, fields) => logger.info(message, fields),
      warn: heard('warn'),
      error: heard('error'),
    };
  }
}

function textOf(message: string, fields: LogFields = {}): string {
  const { reason, error } = fields;
  const why = reason ?? (error instanceof Error ? error.message : undefined);
  return typeof why === 'string' ? `${message} (${why})` : message;
}

/** @param ranHere whether the work of a step of that name was run by the workflow itself */
export function noEndText(
  key: WorkflowKey,
  record: WorkflowRecord | undefined,
  warning: string | undefined,
  ranHere: (step: string) => boolean,
): string {
  const warned = warning === undefined ? '' : `; the last warning was: ${warning}`;
  if (record === undefined)
    return `there is no workflow ${keyOf(key)}: it was not started, or its start was refused${warned}`;
  const { status, error, waits } = record;
  const state = `the workflow is ${status} and does not end`;
  if (error !== undefined) return `${state}: ${error.message}`;
  const what = waits.map((wait) => waitText(wait, ranHere)).join(', ');
  return `${state}${what === '' ? '' : `: it waits for ${what}`}${warned}`;
}

function waitText({ command, name }: WorkflowWait, ranHere: (step: string) => boolean): string {
  const what = commandText({ kind: command, name });
  if (command !== 'step' && command !== 'compensate') return what;
  return ranHere(command === 'step' ? name : `undo ${name}`)
    ? `${what}, which awaits something that virtual time does not bring`
    : `${what}, to which no handler has answered by stepResult or stepFailure`;
}
