// The face of an execution that the method sees: checks what it is given and turns it into commands.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describeValue, toError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import { isTopic, topic as topicNamed } from '../core/topic.js';
import { commandText } from './command.js';
import type { Command, CommandWork } from './command.js';
import { isWorkflowName, referencedName } from './definition.js';
import { areTexts } from './event-message.js';
import type { Execution } from './execution.js';
import type { Flow, StepOptions } from './flow.js';
import { plainValue } from './plain-value.js';
import { uuidOf } from './seeded-values.js';
import type { GivenWork } from './step-of.js';
import { stepOf } from './step-of.js';
import { WorkflowError } from './workflow-errors.js';
import { checkSchema } from './workflow-plans.js';

/** Waits in a race that lost are given up: which commands a promise of `flow` waits for. */
const COMMANDS = new WeakMap<object, readonly Command[]>();

export function flowOf(execution: Execution): Flow {
  const { record, values } = execution;
  const next = (): number => {
    // Inside a step it would be taken in the first run and not in a replay: all later ones would be others.
    if (!execution.isTurn)
      execution.refuse('flow.random() or flow.uuid() was called inside a step; call it before, in the method itself');
    return values.next(execution.commands.length);
  };
  const flow = {
    id: record.id,
    run: record.run,
    get cancelled() {
      return execution.cancelled;
    },
    step: (name: string, work: GivenWork, options: StepOptions<never> = {}) =>
      asked(execution, name, () => ({ command: 'step', step: stepOf(name, work, options) })),
    sleep: (name: string, until: number | Date) =>
      asked(execution, name, () => ({ command: 'sleep', until: checkedUntil(name, until) })),
    signal: (name: string, options: { payload?: StandardSchemaV1; timeoutMs?: number | undefined } = {}) =>
      asked(execution, name, () => signalOf(execution, name, options)),
    child: (workflow: unknown, input: unknown, options: ChildGiven = {}) =>
      asked(execution, referencedName(workflow) ?? '', () => childOf(execution, workflow, input, options)),
    publish: (to: unknown, payload: unknown, options: unknown) => {
      const topic = typeof to === 'string' ? topicNamed(to) : to;
      const name = isTopic(topic) ? topic.name : '';
      return asked(execution, name, () => {
        if (!isTopic(topic)) throw new TypeError(`publish() takes a topic or its name, got ${describeValue(to)}`);
        return { command: 'publish', publish: { topic, payload, options: options as never } };
      });
    },
    all: (these: readonly unknown[]) => {
      if (!Array.isArray(these)) return refused(execution, `flow.all() takes a list, got ${describeValue(these)}`);
      refuseWithdrawn(execution, 'all', these);
      return waitingFor(these, Promise.all(these));
    },
    race: (entries: Readonly<Record<string, PromiseLike<unknown>>>) => raceOf(execution, entries),
    now: () => execution.nowMs,
    random: () => next() / 2 ** 32,
    uuid: () => uuidOf(next),
    query: (name: string, answer: () => unknown) => registered(execution, name, answer),
    patched: (change: string) => {
      if (isName(change)) return execution.patched(change);
      execution.refuse(`flow.patched() needs the name of the change, got ${describeValue(change)}`);
      return false;
    },
    failure: (message: string, options: { readonly cause?: unknown } = {}) =>
      new WorkflowError('WORKFLOW_FAILED', message, { workflow: { name: record.name, id: record.id }, ...options }),
    continueAsNew: (input: unknown) => {
      try {
        execution.continueAsNew(plainValue(input, 'the input of continueAsNew()'));
      } catch (error) {
        execution.refuse(toError(error).message);
      }
      return new Promise<never>(() => undefined);
    },
  };
  return flow as unknown as Flow;
}

interface ChildGiven {
  readonly id?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && name !== '';
}

function refused(execution: Execution, sentence: string): Promise<never> {
  execution.refuse(sentence);
  return new Promise(() => undefined);
}

function registered(execution: Execution, name: string, answer: () => unknown): void {
  if (isName(name) && typeof answer === 'function') execution.queries.set(name, answer);
  else
    execution.refuse(
      `flow.query() takes a name and a function that answers, got ${describeValue(name)} and ${describeValue(answer)}`,
    );
}

/** What was asked for wrongly stops the workflow: neither a retry nor a compensation would make it right. */
function asked(execution: Execution, name: string, workOf: () => CommandWork): Promise<unknown> {
  try {
    if (!isName(name)) throw new TypeError(`it needs a name that is not empty, got ${describeValue(name)}`);
    const command = execution.issue(name, workOf());
    COMMANDS.set(command.promise, [command]);
    return command.promise;
  } catch (error) {
    return refused(execution, `flow was called wrongly: ${toError(error).message}`);
  }
}

function checkedUntil(name: string, until: number | Date): number | Date {
  const check = new OptionChecker(`sleep ${JSON.stringify(name)}`);
  const isDate = until instanceof Date;
  if (isDate && Number.isNaN(until.getTime())) check.problem('"until" is an invalid Date');
  check.required({ until }, { until: 'a duration in milliseconds or a Date' });
  if (!isDate) check.durationMs('until', until);
  check.throwIfAny();
  return until;
}

function signalOf(
  execution: Execution,
  name: string,
  options: { readonly payload?: StandardSchemaV1; readonly timeoutMs?: number | undefined },
): CommandWork {
  const check = new OptionChecker(`signal ${JSON.stringify(name)}`);
  check.options(options, ['payload', 'timeoutMs']);
  checkSchema('payload', options.payload, check);
  check.durationMs('timeoutMs', options.timeoutMs);
  const { signals } = execution.workflow.options;
  if (signals !== undefined && !Object.hasOwn(signals, name))
    check.problem(`the definition accepts no such signal; it has ${Object.keys(signals).join(', ') || 'none'}`);
  check.throwIfAny();
  return { command: 'signal', schema: options.payload ?? signals?.[name], timeoutMs: options.timeoutMs };
}

function childOf(execution: Execution, workflow: unknown, input: unknown, options: ChildGiven): CommandWork {
  const name = referencedName(workflow);
  if (name === undefined)
    throw new TypeError(`child() takes a workflow's name, definition or class, got ${describeValue(workflow)}`);
  const { name: ownName, id, run } = execution.record;
  const check = new OptionChecker(`child ${JSON.stringify(name)}`);
  if (!isWorkflowName(name)) check.problem('no workflow can have that name: letters, digits, ".", "_" and "-"');
  check.options(options, ['id', 'attributes']);
  check.nonEmptyString('id', options.id);
  if (name === ownName && options.id === id)
    check.problem(`"id" is that of this workflow, which would wait for itself`);
  if (options.attributes !== undefined && !areTexts(options.attributes))
    check.problem('"attributes" must be an object of texts');
  check.throwIfAny();
  const own = options.id ?? `${ownName}/${id}/${run}/${execution.commands.length}`;
  const plain = plainValue(input, `the input of child ${JSON.stringify(name)}`);
  return { command: 'child', child: { name, id: own, input: plain, attributes: options.attributes ?? {} } };
}

function commandsOf(promise: unknown): readonly Command[] {
  return COMMANDS.get(Object(promise) as object) ?? [];
}

/** `promise`, which waits for what `these` wait for. */
function waitingFor<T extends Promise<unknown>>(these: readonly unknown[], promise: T): T {
  COMMANDS.set(promise, these.flatMap(commandsOf));
  return promise;
}

/** It would be waited for in vain, without a word. */
function refuseWithdrawn(execution: Execution, call: 'all' | 'race', these: readonly unknown[]): void {
  const withdrawn = these
    .flatMap((each) => commandsOf(each).filter(({ promise }) => promise === each))
    .find(({ state }) => state === 'withdrawn');
  if (withdrawn === undefined) return;
  const what = commandText(withdrawn);
  execution.refuse(`flow.${call}() takes ${what}, which lost a race and is waited for no longer; ask for it anew`);
}

function isThenable(value: unknown): boolean {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}

function raceOf(execution: Execution, entries: Readonly<Record<string, PromiseLike<unknown>>>): Promise<unknown> {
  const isGiven = typeof entries === 'object' && (entries as unknown) !== null && !Array.isArray(entries);
  if (!isGiven || !Object.values(entries).every(isThenable))
    return refused(execution, `flow.race() takes an object of what \`flow\` gave, got ${describeValue(entries)}`);
  const names = Object.keys(entries);
  if (names.length === 0) execution.refuse('flow.race() needs at least one entry');
  const waits = Object.values(entries);
  refuseWithdrawn(execution, 'race', waits);
  const race = new Promise((resolve, reject) => {
    const won = (settle: () => void): void => {
      for (const command of waits.flatMap(commandsOf))
        if (command.state === 'open' && command.isWait) command.state = 'withdrawn';
      settle();
    };
    for (const winner of names)
      entries[winner]?.then(
        (value) => won(() => resolve({ winner, value })),
        (error: unknown) => won(() => reject(toError(error))),
      );
  });
  return waitingFor(waits, race);
}
