// The method of a workflow, run over a journal. Entries are applied one by one, each followed by a turn in which the method
// goes on as far as it can: in a replay and in what is new alike, so that both take the same way. It does nothing by itself:
// what the method asks for is left for the activation to do.
import type { CommandEntry, JournalEntry } from '../core/workflow-journal.js';
import type { WorkflowRecord } from '../ports/workflow-store.js';
import { Command, commandText } from './command.js';
import type { CommandWork } from './command.js';
import { Compensations } from './compensations.js';
import { flowOf } from './flow-of.js';
import type { PlannedWorkflow } from './planned-workflow.js';
import { checkedValue } from './planned-workflow.js';
import { SeededValues } from './seeded-values.js';
import { lostWaitMs } from './step-end.js';
import {
  WorkflowError,
  childFailed,
  diverged,
  isBroken,
  isCancellation,
  methodProblem,
  recordedCause,
  stepFailed,
  workflowCancelled,
} from './workflow-errors.js';

/** Of an entry without a result: a command with its promise, on the average. */
const ENTRY_BYTES = 500;

/** How the method, and all that had to follow it, came out. */
export type Ending =
  | { readonly kind: 'completed'; readonly value: unknown }
  | { readonly kind: 'failed' | 'cancelled'; readonly error: unknown }
  | { readonly kind: 'continued'; readonly input: unknown };

export class Execution {
  readonly workflow: PlannedWorkflow;
  readonly record: WorkflowRecord;
  readonly commands: Command[] = [];
  readonly values: SeededValues;
  readonly queries = new Map<string, () => unknown>();
  /** Children that nobody waits for any more since the last entry: they are to be told. */
  readonly abandoned: Command[] = [];
  readonly #turn: () => Promise<void>;
  /** Those of `commands` that may be open: what is settled is left out with each look. */
  #open: Command[] = [];
  readonly #compensations = new Compensations();
  readonly #cancelled = new AbortController();
  /** What the journal has of commands; those that are reached are compared. */
  #recorded: readonly CommandEntry[] = [];
  /** Entries of the journal that were not applied yet. */
  #left = 0;
  #entries = 0;
  #characters = 0;
  #timeMs: number;
  #isTurn = false;
  #methodIsOver = false;
  /** It has returned, and what it has left running is waited for. */
  #waitsForChildren = false;
  #cancelsNext = false;
  #continued: { readonly input: unknown } | undefined;
  ending: Ending | undefined;
  /** Why it cannot go on with this code. */
  problem: Error | undefined;

  /** @param turn resolves when all that can go on without anything from outside has done so. */
  constructor(workflow: PlannedWorkflow, record: WorkflowRecord, turn: () => Promise<void>) {
    this.workflow = workflow;
    this.record = record;
    this.values = new SeededValues(record.seed);
    this.#turn = turn;
    this.#timeMs = record.runStartedMs;
  }

  get nowMs(): number {
    return this.#timeMs;
  }

  get cancelled(): AbortSignal {
    return this.#cancelled.signal;
  }

  /** It has asked to begin anew: what comes in now is for the next run. */
  get continues(): boolean {
    return this.#continued !== undefined;
  }

  /** It has come to its end, or cannot go on with this code. */
  get isOver(): boolean {
    return this.ending !== undefined || this.problem !== undefined;
  }

  /** Whether a cancellation would still reach the method, or what it has left running. */
  get takesCancellation(): boolean {
    const reaches = !this.#methodIsOver || this.#waitsForChildren;
    return reaches && !this.#cancelled.signal.aborted && this.#continued === undefined;
  }

  /** The method itself is at work, not a step or what the method has awaited from elsewhere. */
  get isTurn(): boolean {
    return this.#isTurn;
  }

  /** How many it has taken. */
  get entries(): number {
    return this.#entries;
  }

  /** About how many bytes it takes: what it has made of each entry, and the results, as they were written. */
  get bytes(): number {
    return this.#entries * ENTRY_BYTES + this.#characters;
  }

  /** Asked for, and not settled. */
  get open(): readonly Command[] {
    this.#open = this.#open.filter(({ state }) => state === 'open');
    return this.#open;
  }

  /** Starts the method and brings it to where the journal ends, or to its `problem`. */
  async replay(journal: readonly JournalEntry[]): Promise<void> {
    this.#recorded = journal.filter((entry) => entry.kind === 'command');
    this.#left = journal.length;
    const input = await checkedValue(this.workflow.options.input, this.record.input);
    if ('problem' in input) {
      this.problem = diverged(`its recorded input does not match the schema: ${input.problem}`);
      return;
    }
    await this.#go(() => void this.#program(input.value));
    for (const entry of journal) {
      if (this.problem !== undefined) return;
      this.abandoned.length = 0;
      this.#left -= 1;
      await this.apply(entry);
    }
  }

  /** Takes an entry of the journal, old or new, and lets the method go on. */
  async apply(entry: JournalEntry): Promise<void> {
    this.#entries += 1;
    if (entry.kind === 'completed' && entry.value !== undefined) this.#characters += JSON.stringify(entry.value).length;
    if (entry.kind !== 'command') this.#timeMs = Math.max(this.#timeMs, entry.atMs);
    if (entry.kind === 'cancelled') return this.#go(() => this.#cancel());
    if (entry.kind === 'resumed') this.#resume();
    else if (entry.kind !== 'ended') await this.#applyTo(this.commands[entry.at], entry);
  }

  /** What the method asks for. Compared with the journal as far as that goes. */
  issue(name: string, work: CommandWork): Command {
    if (!this.#isTurn) return this.#outOfTurn(name, work);
    if (this.#cancelsNext && work.command !== 'compensate' && work.command !== 'patched') {
      this.#cancelsNext = false;
      const refused = new Command(this.commands.length, name, work);
      refused.reject(workflowCancelled());
      return refused;
    }
    if (work.command !== 'patched') this.#passPatches();
    const command = new Command(this.commands.length, name, work);
    this.#compare(command);
    this.commands.push(command);
    this.#open.push(command);
    return command;
  }

  /** True where the journal says so, or where it has come to its end. */
  patched(change: string): boolean {
    const next = this.#recorded[this.commands.length];
    const isRecorded = next?.command === 'patched' && next.name === change;
    if (!isRecorded && (next !== undefined || this.#left > 0)) return false;
    const command = this.issue(change, { command: 'patched' });
    if (command.state === 'open') command.resolve(undefined);
    return true;
  }

  continueAsNew(input: unknown): void {
    this.#continued ??= { input };
  }

  /** The code breaks a rule: it stops here. */
  refuse(sentence: string): void {
    this.problem ??= diverged(sentence);
  }

  #compare(command: Command): void {
    const recorded = this.#recorded[this.commands.length];
    if (recorded === undefined || (recorded.command === command.kind && recorded.name === command.name)) return;
    const was = commandText({ kind: recorded.command, name: recorded.name });
    this.problem ??= diverged(`recorded ${was}, now ${commandText(command)} (command ${recorded.at})`);
  }

  /** Calls of `patched` that were taken out again: everything that is older than them has gone past. */
  #passPatches(): void {
    for (;;) {
      const recorded = this.#recorded[this.commands.length];
      if (recorded?.command !== 'patched') return;
      const passed = new Command(this.commands.length, recorded.name, { command: 'patched' });
      passed.resolve(undefined);
      this.commands.push(passed);
    }
  }

  #outOfTurn(name: string, work: CommandWork): Command {
    const command = new Command(this.commands.length, name, work);
    const rule = diverged(
      `${commandText(command)} was asked for inside a step or a query, or after the method had awaited something that is not of flow; ask for it in the method itself, and await only what flow gives`,
    );
    this.problem ??= rule;
    // A step or a query that awaits it must not stand for ever.
    command.reject(rule);
    return command;
  }

  async #applyTo(
    command: Command | undefined,
    entry: Exclude<JournalEntry, { kind: 'cancelled' | 'resumed' | 'ended' }>,
  ): Promise<void> {
    if (command === undefined) {
      if (entry.kind !== 'command') return;
      this.#passPatches();
      if (this.commands[entry.at] === undefined) this.problem ??= this.#missing(entry);
      return;
    }
    switch (entry.kind) {
      case 'command':
        Object.assign(command, { recorded: true, askedMs: entry.atMs, dueMs: entry.dueMs });
        return;
      case 'attempt':
        begin(command, entry, this.record.seed);
        return;
      case 'attempt-failed':
        Object.assign(command, { inDoubt: false, nextMs: entry.nextMs, dueMs: undefined });
        if (entry.spent) Object.assign(command, { failures: command.failures + 1, unspent: 0 });
        else command.unspent += 1;
        return;
      case 'stuck':
        Object.assign(command, { inDoubt: false, stuck: true, stuckBy: entry.error, dueMs: undefined });
        return;
      case 'completed':
        return this.#complete(command, entry);
      case 'failed':
        command.inDoubt = false;
        return this.#go(() => command.reject(failureOf(command, entry)));
    }
  }

  async #complete(command: Command, entry: Extract<JournalEntry, { kind: 'completed' }>): Promise<void> {
    command.inDoubt = false;
    let { value } = entry;
    const schema = entry.timedOut === true ? undefined : command.resultSchema;
    if (schema !== undefined) {
      const checked = await checkedValue(schema, value);
      if ('problem' in checked) {
        this.problem ??= diverged(`recorded ${commandText(command)} does not match its schema now: ${checked.problem}`);
        return;
      }
      value = checked.value;
    }
    if (command.work.command === 'step') this.#compensations.add(command, value);
    return this.#go(() => command.resolve(value));
  }

  /** The method goes on as far as it can. What it then waits for must be something that can come. */
  async #go(act: () => void = () => undefined): Promise<void> {
    this.#isTurn = true;
    act();
    await this.#turn();
    this.#isTurn = false;
    if (this.#continued !== undefined && !this.#methodIsOver) this.#continue(this.#continued.input);
    if (this.problem !== undefined || this.ending !== undefined || this.open.length > 0) return;
    this.problem = diverged(
      `the method waits for something that is not of flow, or that nobody will bring${this.#last()}; put what is not of flow into flow.step()`,
    );
  }

  /** What still runs is waited for first: it may be a step whose result nobody has seen. */
  #continue(input: unknown): void {
    for (const command of this.open) if (command.isWait) command.state = 'withdrawn';
    if (this.open.length > 0) return;
    this.#methodIsOver = true;
    this.ending = { kind: 'continued', input };
  }

  async #program(input: unknown): Promise<void> {
    try {
      const run = (): Promise<unknown> => this.workflow.run(flowOf(this), input as never);
      const { watch } = this.workflow;
      const value = await (watch === undefined ? run() : watch((sentence) => this.refuse(sentence), run));
      if (this.#continued !== undefined) return;
      await this.#whenSettled(true);
      this.ending ??= { kind: 'completed', value };
    } catch (error) {
      if (isBroken(error)) {
        this.problem ??= methodProblem(error);
        return;
      }
      if (this.#continued !== undefined || this.problem !== undefined) return;
      await this.#whenSettled(false);
      // A repeat of what is in doubt comes before what undoes it: that is settled now.
      for (const { command, undo } of this.#compensations.reversed())
        await this.issue(command.name, { command: 'compensate', step: undo }).promise;
      this.ending ??= { kind: isCancellation(error) ? 'cancelled' : 'failed', error };
    }
  }

  /** The method is over. Nobody waits for sleeps and signals, nor for children of one that failed. */
  async #whenSettled(waitsForChildren: boolean): Promise<void> {
    this.#methodIsOver = true;
    this.#waitsForChildren = waitsForChildren;
    for (const command of this.open) {
      const isLeft = command.isWait || (command.kind === 'child' && !waitsForChildren);
      if (isLeft) command.state = 'withdrawn';
      if (isLeft && command.kind === 'child') this.abandoned.push(command);
    }
    while (this.open.length > 0) await Promise.allSettled(this.open.map(({ promise }) => promise));
    this.#waitsForChildren = false;
  }

  /** Waits end, once; a step that runs is told and has its end written down first. */
  #cancel(): void {
    this.#cancelled.abort(workflowCancelled());
    this.#cancelsNext = true;
    for (const command of this.open) {
      if (command.kind === 'compensate' || command.kind === 'publish' || command.inDoubt) continue;
      if (command.kind === 'child') this.abandoned.push(command);
      this.#cancelsNext = false;
      command.reject(workflowCancelled());
    }
  }

  #resume(): void {
    for (const command of this.open)
      if (command.stuck) Object.assign(command, { stuck: false, stuckBy: undefined, failures: 0, nextMs: -Infinity });
  }

  #missing(entry: CommandEntry): Error {
    const was = commandText({ kind: entry.command, name: entry.name });
    const now = this.ending === undefined ? 'the method waits for something else' : 'the method has ended';
    return diverged(`recorded ${was}, now ${now} (command ${entry.at})`);
  }

  #last(): string {
    const last = this.commands.at(-1);
    return last === undefined ? '' : ` after ${commandText(last)}`;
  }
}

/** An attempt. Of what runs here a timer of the run has the time limit. */
function begin(command: Command, entry: Extract<JournalEntry, { kind: 'attempt' }>, seed: string): void {
  const { attempt: attempts, atMs: startedMs, sent = false } = entry;
  const limitMs = sent ? command.step?.timeoutMs : undefined;
  const dueMs = limitMs === undefined ? undefined : startedMs + limitMs;
  const lost = command.inDoubt ? command.lost + 1 : 0;
  const nextMs = lost === 0 ? -Infinity : startedMs + lostWaitMs(lost, spreadOf(command, attempts, seed));
  Object.assign(command, { attempts, startedMs, inDoubt: true, lost, sent, dueMs, nextMs });
}

/** From 0 to 1: the same in each replay, and another one for each attempt of each step of each workflow. */
function spreadOf({ at }: Command, attempt: number, seed: string): number {
  return new SeededValues(`${seed}/${at}`).next(attempt) / 2 ** 32;
}

function failureOf(command: Command, { error }: Extract<JournalEntry, { kind: 'failed' }>): Error {
  if (error.code === 'WORKFLOW_CANCELLED') return workflowCancelled();
  if (command.kind === 'child') return childFailed(command.name, error);
  if (command.kind !== 'publish') return stepFailed(command.name, error);
  return new WorkflowError('PUBLISH_REFUSED', error.message, { step: command.name, cause: recordedCause(error) });
}
