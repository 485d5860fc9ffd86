// What one activation writes into the log, for people.
import type { JournalEntry } from '../core/workflow-journal.js';
import type { LogFields, Logger } from '../ports/logger.js';
import type { InboxEvent, WorkflowKey } from '../ports/workflow-store.js';
import type { Command } from './command.js';
import { commandText } from './command.js';

export class ActivationLog {
  readonly #key: WorkflowKey;
  readonly #logger: Logger;

  constructor(key: WorkflowKey, logger: Logger) {
    this.#key = key;
    this.#logger = logger;
  }

  /** An attempt of a step failed, or the step did. @param entry that it leaves; of others nothing is said */
  stepEnded(command: Command, entry: JournalEntry): void {
    if (entry.kind !== 'failed' && entry.kind !== 'attempt-failed' && entry.kind !== 'stuck') return;
    const level = entry.kind === 'attempt-failed' ? 'warn' : 'error';
    const what = entry.kind === 'stuck' ? 'workflow is stuck: a compensation gave up' : 'workflow step failed';
    const { at, attempts: attempt } = command;
    this.#write(level, what, { step: commandText(command), at, attempt, reason: entry.error.message });
  }

  leftAlone(command: Command): void {
    const { attempts, nextMs: untilMs } = command;
    const what = 'workflow waits: attempts of a step left nothing behind, one after the other';
    this.#write('warn', what, { step: commandText(command), attempts, untilMs });
  }

  blocked(problem: Error): void {
    this.#write('error', 'workflow is blocked: its code does not fit its journal', { error: problem });
  }

  putOff(version: number): void {
    this.#write('warn', 'workflow is put off: no definition of its version is here', { version });
  }

  dropped({ name, eventId }: InboxEvent, reason: string): void {
    const what = 'workflow signal dropped: it does not match the schema';
    this.#write('warn', what, { signal: name, eventId, reason });
  }

  #write(level: 'warn' | 'error', what: string, fields: LogFields): void {
    this.#logger[level](what, { workflow: this.#key.name, id: this.#key.id, ...fields });
  }
}
