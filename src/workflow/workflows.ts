// Workflows on a runtime: what services and operators call. What changes a workflow goes as a message to whoever works on it;
// what only looks is read from the store.
import { describeValue } from '../core/errors.js';
import type { PulseworkError } from '../core/errors.js';
import { WORKFLOW_STATUSES } from '../core/workflow-journal.js';
import { OptionChecker } from '../core/options.js';
import type { WorkflowFilter, WorkflowKey, WorkflowRecord } from '../ports/workflow-store.js';
import { extenderOf } from '../runtime/extension.js';
import type { WorkflowInput, WorkflowReference, WorkflowResult } from './definition.js';
import { referencedName } from './definition.js';
import type { EventMessage } from './event-message.js';
import { areTexts, eventTopic } from './event-message.js';
import { followed } from './follow.js';
import { answerOf } from './query.js';
import { plainValue } from './plain-value.js';
import { checkedValue } from './planned-workflow.js';
import { uuidOf } from './seeded-values.js';
import type { ProgressEvent, ProgressOptions } from './progress-feed.js';
import { workflowTimeline } from './timeline.js';
import type { ResultOptions, SignalSendOptions, WorkflowHandle, WorkflowHistory } from './workflow-handle.js';
import { resultOf } from './workflow-handle.js';
import { WorkflowError, keyOf } from './workflow-errors.js';
import { WorkflowMachine } from './workflow-machine.js';
import { bindWorkflows } from './workflow-plans.js';
import type { WorkflowsOptions } from './workflows-options.js';
import { resolveWorkflowsOptions } from './workflows-options.js';

export interface StartOptions<In = unknown> {
  /** What the workflow is about, such as the id of an order: there is one workflow of each name and id. */
  readonly id: string;
  readonly input: In;
  /** To find it by with `list`. @default none */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

export type ListOptions = Partial<WorkflowFilter>;

/** Of a list without a limit. */
const DEFAULT_LIMIT = 100;

export class Workflows {
  /**
   * Opens the store and the subscriptions, and goes on with what is there. All or nothing.
   * @throws ConfigurationError with every problem of options and definitions; PulseworkError START_FAILED, ILLEGAL_STATE
   */
  static async start(options: WorkflowsOptions): Promise<Workflows> {
    const resolved = resolveWorkflowsOptions(options);
    const bound = await bindWorkflows(resolved.unbound, options.resolve);
    const extend = extenderOf(resolved.runtime);
    let machine: WorkflowMachine | undefined;
    await resolved.store.open();
    try {
      await extend?.((ground) => (machine = new WorkflowMachine(resolved, bound, ground)));
    } catch (error) {
      machine?.abandon();
      await resolved.store.close();
      await bound.close();
      throw error;
    }
    const started = machine as unknown as WorkflowMachine;
    started.start();
    return new Workflows(resolved, started);
  }

  readonly #runtime: WorkflowsOptions['runtime'];
  readonly #machine: WorkflowMachine;

  private constructor({ runtime }: Pick<WorkflowsOptions, 'runtime'>, machine: WorkflowMachine) {
    this.#runtime = runtime;
    this.#machine = machine;
  }

  /**
   * Resolves when the start is with the broker; it is then taken up by whichever process comes first. Where there is a
   * workflow of this name and id already, ended or not, that one goes on as it is.
   * @throws WorkflowError WORKFLOW_VALUE_INVALID, WORKFLOW_NOT_FOUND for a name without a definition; as `publish`
   */
  async start<W extends WorkflowReference>(
    workflow: W,
    options: StartOptions<WorkflowInput<W>>,
  ): Promise<WorkflowHandle<WorkflowResult<W>>> {
    const key = this.#startKey(workflow, options);
    const newest = this.#machine.newest(key.name);
    const checked = await checkedValue(newest?.options.input, options.input);
    if ('problem' in checked) throw invalid(key, `its input does not match the schema: ${checked.problem}`);
    const input = plainValue(options.input, `the input of workflow ${keyOf(key)}`);
    const { attributes } = options;
    await this.#send(key, { v: 1, id: key.id, kind: 'start', version: newest?.options.version, input, attributes });
    return this.handle(workflow, key.id);
  }

  /** Of a workflow that was started here or elsewhere, now or long ago. */
  handle<W extends WorkflowReference>(workflow: W, id: string): WorkflowHandle<WorkflowResult<W>> {
    const key = this.#keyOf(workflow, id);
    return {
      ...key,
      result: (options?: ResultOptions) => resultOf(this.#machine, key, options) as Promise<WorkflowResult<W>>,
      signal: (name, payload, options) => this.signal(key.name, id, name, payload, options),
      query: (name) => this.query(key.name, id, name),
      cancel: () => this.cancel(key.name, id),
      terminate: () => this.terminate(key.name, id),
      resume: () => this.resume(key.name, id),
      describe: () => this.describe(key.name, id),
      history: () => this.history(key.name, id),
      timeline: async () => workflowTimeline(await this.history(key.name, id)),
      events: (options = {}) => followed(this.#machine, key, checkedFollow(options).signal),
    };
  }

  /**
   * For `flow.signal`. Resolves when it is with the broker. One that comes before the start is kept for 24 hours; one that
   * comes after the end is not.
   * @throws WorkflowError WORKFLOW_VALUE_INVALID where the newest definition accepts no such signal or payload
   */
  async signal(
    workflow: WorkflowReference,
    id: string,
    name: string,
    payload?: unknown,
    options: SignalSendOptions = {},
  ): Promise<void> {
    const key = this.#keyOf(workflow, id);
    const check = new OptionChecker('signal');
    check.required({ name }, { name: 'a text' });
    check.nonEmptyString('name', name);
    check.options(options, ['eventId']);
    check.nonEmptyString('eventId', options.eventId);
    check.throwIfAny();
    const signals = this.#machine.newest(key.name)?.options.signals;
    if (signals !== undefined && !Object.hasOwn(signals, name))
      throw invalid(key, `it accepts no signal ${JSON.stringify(name)}; it has ${Object.keys(signals).join(', ')}`);
    const checked = await checkedValue(signals?.[name], payload);
    if ('problem' in checked) throw invalid(key, `signal ${JSON.stringify(name)}: ${checked.problem}`);
    const plain = plainValue(payload, `signal ${JSON.stringify(name)}`);
    const eventId = options.eventId ?? this.#newId();
    await this.#send(key, { v: 1, id, kind: 'signal', eventId, name, payload: plain });
  }

  /**
   * What the method's `flow.query` of that name says, as of what is recorded: the method is replayed here, and nothing is run.
   * @throws WorkflowError WORKFLOW_NOT_FOUND, WORKFLOW_DIVERGED, WORKFLOW_VALUE_INVALID
   */
  async query(workflow: WorkflowReference, id: string, name: string): Promise<unknown> {
    return answerOf(this.#machine, this.#keyOf(workflow, id), name);
  }

  /** Asks it to end: the method's waits reject, what was done is compensated. An ended one stays as it is. */
  async cancel(workflow: WorkflowReference, id: string): Promise<void> {
    return this.#tell(workflow, id, 'cancel');
  }

  /** Ends it at once, without compensation. Its children go on. */
  async terminate(workflow: WorkflowReference, id: string): Promise<void> {
    return this.#tell(workflow, id, 'terminate');
  }

  /** Goes on with one that is `stuck`, after repair; the compensation that gave up has all its attempts again. */
  async resume(workflow: WorkflowReference, id: string): Promise<void> {
    return this.#tell(workflow, id, 'resume');
  }

  /** Undefined when there is none, or its start has not arrived. */
  async describe(workflow: WorkflowReference, id: string): Promise<WorkflowRecord | undefined> {
    const key = this.#keyOf(workflow, id);
    return this.#machine.store('reading a workflow', (store) => store.get(key));
  }

  /** All that is recorded of it. @throws WorkflowError WORKFLOW_NOT_FOUND */
  async history(workflow: WorkflowReference, id: string): Promise<WorkflowHistory> {
    const key = this.#keyOf(workflow, id);
    const snapshot = await this.#machine.store('reading a workflow', (store) => store.read(key));
    if (snapshot === undefined) throw notFound(key);
    const { record, journal } = snapshot;
    return { format: 'pulsework-workflow-history', v: 1, record, journal };
  }

  /**
   * What happens to workflows, as this process does it, from now on: each thing once it is recorded. Take it in time: beyond
   * `buffer` the oldest are dropped, and `{ kind: 'missed', count }` comes in their place. Ends with `signal`, by `break`, and
   * with the runtime, after what waits was taken.
   */
  events(options: ProgressOptions = {}): AsyncIterableIterator<ProgressEvent> {
    return this.#machine.feed.listen(options);
  }

  /** In the order in which they began, 100 unless `limit` says otherwise; `after` goes on behind one of them. */
  async list(filter: ListOptions = {}): Promise<readonly WorkflowRecord[]> {
    const check = new OptionChecker('list');
    const known = ['name', 'status', 'attributes', 'createdFromMs', 'createdBeforeMs', 'after', 'limit'];
    if (check.object('filter', filter)) check.unknownOptions(filter, known);
    check.throwIfAny();
    check.positiveInteger('limit', filter.limit);
    check.nonEmptyString('name', filter.name);
    check.oneOf('status', filter.status, WORKFLOW_STATUSES);
    for (const name of ['createdFromMs', 'createdBeforeMs'] as const)
      if (filter[name] !== undefined && !Number.isFinite(filter[name]))
        check.problem(`"${name}" must be epoch milliseconds, got ${describeValue(filter[name])}`);
    if (filter.after !== undefined && !isPlace(filter.after))
      check.problem('"after" must be a record of an earlier list, or its { createdMs, name, id }');
    if (filter.attributes !== undefined && !areTexts(filter.attributes))
      check.problem('"attributes" must be an object of texts');
    check.throwIfAny();
    const whole = { ...filter, limit: filter.limit ?? DEFAULT_LIMIT };
    return this.#machine.store('listing workflows', (store) => store.list(whole));
  }

  #tell(workflow: WorkflowReference, id: string, kind: 'cancel' | 'terminate' | 'resume'): Promise<void> {
    return this.#send(this.#keyOf(workflow, id), { v: 1, id, kind, eventId: this.#newId() });
  }

  async #send(key: WorkflowKey, event: EventMessage): Promise<void> {
    await this.#runtime.publisher(eventTopic(key.name)).publish(event, { key: key.id });
  }

  #startKey(workflow: WorkflowReference, options: StartOptions): WorkflowKey {
    const check = new OptionChecker('start');
    if (check.object('options', options, '{ id, input }')) check.unknownOptions(options, ['id', 'input', 'attributes']);
    check.throwIfAny();
    if (options.attributes !== undefined && !areTexts(options.attributes))
      check.problem('"attributes" must be an object of texts');
    check.throwIfAny();
    return this.#keyOf(workflow, options.id);
  }

  #keyOf(workflow: WorkflowReference, id: string): WorkflowKey {
    const name = referencedName(workflow);
    const check = new OptionChecker('workflow');
    check.required({ id }, { id: 'a text' });
    check.nonEmptyString('id', id);
    if (name === undefined) check.problem('name it by its name, its definition or its class');
    check.throwIfAny();
    if (this.#machine.names.includes(name ?? '')) return { name: name ?? '', id };
    const known = this.#machine.names.join(', ');
    throw new WorkflowError(
      'WORKFLOW_NOT_FOUND',
      `no definition of workflow ${JSON.stringify(name)}; there are ${known}`,
    );
  }

  #newId(): string {
    return uuidOf(() => Math.floor(this.#machine.random() * 2 ** 32));
  }
}

function invalid(workflow: WorkflowKey, rule: string): PulseworkError {
  return new WorkflowError('WORKFLOW_VALUE_INVALID', `workflow ${keyOf(workflow)}: ${rule}`, { workflow });
}

function checkedFollow(options: { readonly signal?: AbortSignal | undefined }): typeof options {
  const check = new OptionChecker('events');
  check.options(options, ['signal']);
  check.throwIfAny();
  return options;
}

function isPlace(after: unknown): boolean {
  const { createdMs, name, id } = (after ?? {}) as Readonly<Record<string, unknown>>;
  return Number.isFinite(createdMs) && typeof name === 'string' && typeof id === 'string';
}

function notFound(workflow: WorkflowKey): WorkflowError {
  return new WorkflowError('WORKFLOW_NOT_FOUND', `there is no workflow ${keyOf(workflow)}`, { workflow });
}
