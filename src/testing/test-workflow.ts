// The test kit for workflows: a runtime on an embedded broker, a store in memory and a clock that stands still. Sleeps of weeks
// take no time, steps can be replaced, and a process can be killed and started again, with other code too.
import { EmbeddedBroker } from '../broker/embedded-broker.js';
import { PulseworkError } from '../core/errors.js';
import { OptionChecker, days, hours, minutes, seconds } from '../core/options.js';
import { hasEnded } from '../core/workflow-journal.js';
import type { Logger } from '../ports/logger.js';
import type { Telemetry } from '../ports/telemetry.js';
import type { WorkflowRecord, WorkflowStore } from '../ports/workflow-store.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import type { RuntimeOptions } from '../runtime/runtime-options.js';
import { Runtime } from '../runtime/runtime.js';
import { memoryWorkflowStore } from '../stores/memory/memory-workflow-store.js';
import { consoleLogger } from '../system/console-logger.js';
import { systemGlobalGuard } from '../system/global-guard.js';
import { embedded } from '../transports/embedded/embedded-transport.js';
import type { WorkflowInput, WorkflowReference, WorkflowResult } from '../workflow/definition.js';
import { referencedName } from '../workflow/definition.js';
import { EVENT_SUBSCRIPTION, eventTopicName } from '../workflow/event-message.js';
import type { DeterminismGuard } from '../workflow/determinism.js';
import { SeededValues } from '../workflow/seeded-values.js';
import type { StepContext } from '../workflow/flow.js';
import type { SignalSendOptions, WorkflowHandle, WorkflowHistory } from '../workflow/workflow-handle.js';
import type { GivenDefinition } from '../workflow/workflow-plans.js';
import type { StartOptions } from '../workflow/workflows.js';
import { Workflows } from '../workflow/workflows.js';
import { GLOBAL_GUARD } from '../workflow/workflows-options.js';
import { FakeClock } from './fake-clock.js';
import { MortalClock } from './mortal-clock.js';
import { LastWarning, noEndText } from './no-end.js';
import { readTopic } from './read-topic.js';
import type { StepRunRecord } from './step-ledger.js';
import { StepLedger } from './step-ledger.js';
import { stubbedOptions } from './stubbed-workflows.js';

/** What a step does instead, by its name, a compensation as `undo NAME`. `undefined` as a result is one. */
export type WorkflowStepStubs = Readonly<Record<string, (context: StepContext) => unknown>>;

export interface TestWorkflowOptions {
  /** As for `Workflows.start`. @default `new WorkflowClass()` */
  readonly resolve?: HandlerResolver | undefined;
  /** In place of the work of steps of these names. One that no step has had is warned of at the end. @default their own */
  readonly steps?: WorkflowStepStubs | undefined;
  /** Beside the workflows. @default none */
  readonly handlers?: RuntimeOptions['handlers'] | undefined;
  /** As for `Runtime.start`. @default none */
  readonly telemetry?: Telemetry | undefined;
  /** As for `Workflows.start`. @default 'block' */
  readonly determinismGuard?: DeterminismGuard | undefined;
  /** @default nothing but what is wrong with the test is logged */
  readonly logger?: Logger | undefined;
}

/** Longer than any lease, call and scan: what a process left behind is found by then. */
const TAKE_OVER_MS = minutes(2);
/** What becomes due in between has a timer: only so is a sleep of a year short. */
const SCAN_MS = hours(12);
/** From one renewal of a lease to the next, a virtual day: a step that has brought nothing by then will not. */
const MAX_LOOKS_FOR_NOTHING = 3_000;
/** Workflows of a test, of which some wait may end by itself. */
const MAX_LOOKED_AT = 1_000;
/** A workflow that waits longer than this waits for a signal. */
const MAX_SKIPPED_MS = days(3_660);

const KNOWN = ['resolve', 'steps', 'handlers', 'telemetry', 'determinismGuard', 'logger'];

/**
 * @param definitions one, or several that work together
 * @throws ConfigurationError for options that do not exist, and for steps that are not replaced by a function.
 */
export async function testWorkflow(
  definitions: GivenDefinition | readonly GivenDefinition[],
  options: TestWorkflowOptions = {},
): Promise<WorkflowTest> {
  const list = Array.isArray(definitions)
    ? (definitions as readonly GivenDefinition[])
    : [definitions as GivenDefinition];
  const check = new OptionChecker('testWorkflow');
  check.unknownOptions(options, KNOWN);
  for (const [name, work] of Object.entries(options.steps ?? {})) check.function(`steps.${name}`, work);
  check.throwIfAny();
  const test = new WorkflowTest();
  await test.begin(list, options);
  return test;
}

export class WorkflowTest implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly broker = new EmbeddedBroker({ clock: this.clock });
  readonly #ledger = new StepLedger();
  readonly #store: WorkflowStore = this.#ledger.watching(memoryWorkflowStore());
  #process: { readonly runtime: Runtime; readonly workflows: Workflows; readonly end: () => void } | undefined;
  readonly #random = seededRandom();
  #isCut = false;
  readonly #warning = new LastWarning();
  #definitions: readonly GivenDefinition[] = [];
  #options: TestWorkflowOptions = {};
  #readers = 0;

  /** For what the kit has no word for. */
  get workflows(): Workflows {
    return this.#running.workflows;
  }

  get runtime(): Runtime {
    return this.#running.runtime;
  }

  /** Every run of a step's work, compensations too, in order. */
  get runs(): readonly StepRunRecord[] {
    return this.#ledger.runs;
  }

  /** Names of the steps that ran, in order; compensations as `undo NAME`. */
  get steps(): readonly string[] {
    return this.runs.map(({ step }) => step);
  }

  /** What must never happen and did, such as a step that ran again after its result was recorded. */
  get violations(): readonly string[] {
    return this.#ledger.violations;
  }

  async start<W extends WorkflowReference>(
    workflow: W,
    options: StartOptions<WorkflowInput<W>>,
  ): Promise<WorkflowHandle<WorkflowResult<W>>> {
    const handle = await this.#while(this.workflows.start(workflow, options));
    await this.settled();
    return handle;
  }

  async signal(
    workflow: WorkflowReference,
    id: string,
    name: string,
    payload?: unknown,
    options?: SignalSendOptions,
  ): Promise<void> {
    await this.#while(this.workflows.signal(workflow, id, name, payload, options));
    await this.settled();
  }

  async cancel(workflow: WorkflowReference, id: string): Promise<void> {
    await this.#while(this.workflows.cancel(workflow, id));
    await this.settled();
  }

  /** Skips time until the workflow has ended. @throws as `handle.result`; Error when only a signal could end it */
  async result<W extends WorkflowReference>(workflow: W, id: string): Promise<WorkflowResult<W>> {
    const record = (await this.ended(workflow, id)) ?? (await this.describe(workflow, id));
    if (record === undefined || !hasEnded(record.status)) {
      const name = referencedName(workflow) ?? '';
      const ranHere = (step: string): boolean =>
        this.runs.some((run) => run.workflow === name && run.id === id && run.step === step);
      throw new Error(noEndText({ name, id }, record, this.#warning.text, ranHere));
    }
    return this.#while(this.workflows.handle(workflow, id).result());
  }

  /** Skips time until the workflow has ended; undefined when it is blocked, stuck, or waits for what no time brings. */
  async ended(workflow: WorkflowReference, id: string): Promise<WorkflowRecord | undefined> {
    const untilMs = this.clock.now() + MAX_SKIPPED_MS;
    let known = this.#ledger.entries;
    for (let looks = 0; looks < MAX_LOOKS_FOR_NOTHING; looks++) {
      await this.settled();
      if (this.#ledger.entries > known || (await this.#hasEnd())) looks = 0;
      known = this.#ledger.entries;
      const record = await this.describe(workflow, id);
      if (record !== undefined && hasEnded(record.status)) return record;
      if (record?.status === 'blocked' || record?.status === 'stuck') return undefined;
      // Of any workflow: it may be what this one waits for.
      const [next] = await this.#store.due({ names: this.#names, beforeMs: untilMs, limit: 1 });
      if (next === undefined) return undefined;
      await this.clock.advanceBy(Math.max(seconds(1), next.wakeMs - this.clock.now()));
    }
    return undefined;
  }

  /** Some wait, or the time limit of a step that runs, will be over by itself. */
  async #hasEnd(): Promise<boolean> {
    const records = await this.#store.list({ status: 'running', limit: MAX_LOOKED_AT });
    return records.some(({ waits }) => waits.some(({ untilMs = 0 }) => untilMs > this.clock.now()));
  }

  describe(workflow: WorkflowReference, id: string): Promise<WorkflowRecord | undefined> {
    return this.#while(this.workflows.describe(workflow, id));
  }

  query(workflow: WorkflowReference, id: string, name: string): Promise<unknown> {
    return this.#while(this.workflows.query(workflow, id, name));
  }

  history(workflow: WorkflowReference, id: string): Promise<WorkflowHistory> {
    return this.#while(this.workflows.history(workflow, id));
  }

  /** Payloads of all messages that a topic holds, read as JSON. */
  async published(topic: string): Promise<readonly unknown[]> {
    if (!this.broker.topics().includes(this.broker.fullName(topic))) return [];
    const messages = await readTopic(this.broker, this.clock, topic, `workflow-test-${++this.#readers}`);
    return messages.map(({ payload }) => JSON.parse(new TextDecoder().decode(payload ?? undefined)) as unknown);
  }

  /** Why events of a workflow were given up, in order. */
  async deadLetters(workflow: WorkflowReference): Promise<readonly string[]> {
    const topic = `${eventTopicName(referencedName(workflow) ?? '')}-${EVENT_SUBSCRIPTION}-DLQ`;
    if (!this.broker.topics().includes(this.broker.fullName(topic))) return [];
    const messages = await readTopic(this.broker, this.clock, topic, `workflow-test-${++this.#readers}`);
    return messages.map(({ properties }) => properties['pulsework-reason'] ?? '');
  }

  /** Lets what needs no time happen. */
  async settled(): Promise<void> {
    for (let turns = 0; turns < 10; turns++) await this.clock.advanceBy(0);
  }

  async advanceBy(ms: number): Promise<void> {
    await this.settled();
    await this.clock.advanceBy(ms);
    await this.settled();
  }

  /** Ends the process in the middle of whatever it does: nothing is finished, given back or closed. */
  kill(): void {
    this.#process?.end();
    this.#process = undefined;
  }

  /**
   * Another process on what is left, perhaps with other code, as after a crash (`kill` first) or a deploy. It has taken over
   * when this resolves.
   */
  async restart(
    definitions: GivenDefinition | readonly GivenDefinition[] = this.#definitions,
    options: TestWorkflowOptions = this.#options,
  ): Promise<void> {
    if (this.#process !== undefined) await this.#endProcess();
    const list = Array.isArray(definitions)
      ? (definitions as readonly GivenDefinition[])
      : [definitions as GivenDefinition];
    await this.begin(list, options);
    await this.advanceBy(TAKE_OVER_MS);
  }

  /**
   * Cuts this process off from the store: its calls fail, as in a network partition, while it goes on running.
   * @returns what ends the cut
   */
  isolateStore(): () => void {
    this.#isCut = true;
    return () => (this.#isCut = false);
  }

  /** Drains and closes. */
  async close(): Promise<void> {
    this.#warnOfSteps();
    await this.#endProcess();
  }

  /** A name that is misspelt replaces nothing, and the real work is done. */
  #warnOfSteps(): void {
    const { steps = {}, logger = consoleLogger({ level: 'warn' }) } = this.#options;
    const replacedNothing = Object.keys(steps).filter((step) => !this.steps.includes(step));
    const ranAsTheyAre = [...new Set(this.steps)].filter((step) => !Object.hasOwn(steps, step));
    if (replacedNothing.length > 0 && ranAsTheyAre.length > 0)
      logger.warn('testWorkflow: some of "steps" replaced nothing, and other steps ran as they are', {
        replacedNothing: replacedNothing.join(', '),
        ranAsTheyAre: ranAsTheyAre.join(', '),
      });
  }

  async #endProcess(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running !== undefined) await this.#while(running.runtime.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  async begin(definitions: readonly GivenDefinition[], options: TestWorkflowOptions): Promise<void> {
    this.#definitions = definitions;
    this.#options = options;
    const clock = new MortalClock(this.clock);
    const inner = embedded({ broker: this.broker });
    const transport = new Proxy(inner, {
      get: (target, name) => {
        if (name === 'clock') return clock;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
    const { resolve, steps, handlers = [], telemetry } = options;
    const logger = this.#warning.of(options.logger ?? consoleLogger({ level: 'silent' }));
    const runtime = await this.#while(Runtime.start({ transport, handlers, logger, telemetry, random: this.#random }));
    // A process that is killed closes nothing, and this one goes on.
    let releaseGlobals = (): void => undefined;
    const guard = { ...systemGlobalGuard, install: () => (releaseGlobals = systemGlobalGuard.install()) };
    const { determinismGuard = 'block' } = options;
    const shared = { runtime, store: this.#reachable(), definitions, resolve, determinismGuard, [GLOBAL_GUARD]: guard };
    const given = { ...shared, scanIntervalMs: SCAN_MS };
    const workflows = await this.#while(Workflows.start(stubbedOptions(given, steps, this.#ledger)));
    const end = (): void => {
      clock.end();
      releaseGlobals();
      void inner.close();
    };
    this.#process = { runtime, workflows, end };
  }

  /** The store, while it is reached. */
  #reachable(): WorkflowStore {
    return new Proxy(this.#store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (this.#isCut)
            return Promise.reject(new PulseworkError('STORE_FAILED', 'the store is cut off, for a test'));
          return (value as (...given: unknown[]) => unknown).apply(target, args);
        };
      },
    });
  }

  get #names(): readonly string[] {
    return this.#definitions.map((definition) => referencedName(definition) ?? '');
  }

  get #running(): { readonly runtime: Runtime; readonly workflows: Workflows } {
    if (this.#process === undefined)
      throw new PulseworkError('ILLEGAL_STATE', 'the process of this test has ended; restart() it first');
    return this.#process;
  }

  /** Time goes on a little while something is waited for that needs a turn of the clock. */
  async #while<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const watched = work.finally(() => (state.isDone = true));
    watched.catch(() => undefined);
    await this.settled();
    await this.clock.advanceUntil(() => state.isDone, { stepMs: 100, maxMs: TAKE_OVER_MS });
    return watched;
  }
}

/** Equal tests do the same in each run; ids still differ from each other. */
function seededRandom(): () => number {
  const values = new SeededValues('workflow test');
  return () => values.next(0) / 2 ** 32;
}
