// Workflows in a world in which one call goes wrong: each call to the broker and to the store, one after the other, in each
// way, the end of the process among them. What is left is taken over by another process.
import { jsonCodec } from '../core/codec.js';
import { describeValue } from '../core/errors.js';
import { OptionChecker, minutes, seconds } from '../core/options.js';
import type { WorkflowRecord, WorkflowStore } from '../ports/workflow-store.js';
import { WORKFLOW_STORE_METHODS } from '../ports/workflow-store.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import type { RuntimeOptions } from '../runtime/runtime-options.js';
import { Runtime } from '../runtime/runtime.js';
import { memoryWorkflowStore } from '../stores/memory/memory-workflow-store.js';
import { consoleLogger } from '../system/console-logger.js';
import type { EventMessage } from '../workflow/event-message.js';
import { EVENT_SUBSCRIPTION, eventTopicName } from '../workflow/event-message.js';
import type { WorkflowReference } from '../workflow/definition.js';
import { referencedName } from '../workflow/definition.js';
import { SeededValues } from '../workflow/seeded-values.js';
import type { GivenDefinition } from '../workflow/workflow-plans.js';
import { Workflows } from '../workflow/workflows.js';
import type { Cut } from './crash-world.js';
import { CrashWorld } from './crash-world.js';
import { FAULTS } from './faulty-transport.js';
import type { CountedCall, Fault } from './faulty-transport.js';
import type { StepRunRecord } from './step-ledger.js';
import { StepLedger } from './step-ledger.js';
import { stubbedOptions } from './stubbed-workflows.js';
import type { WorkflowStepStubs } from './test-workflow.js';

/** What somebody outside does to a workflow, so long after the last such thing. */
export type CrashEvent = { readonly afterMs: number; readonly workflow: WorkflowReference; readonly id: string } & (
  | { readonly start: unknown }
  | { readonly signal: string; readonly payload?: unknown }
  | { readonly cancel: true }
);

/** Everything of it is made anew for each run: what a workflow changes outside must not outlive the run. */
export interface CrashScenario {
  readonly definitions: readonly GivenDefinition[];
  /** For each process. @default `new WorkflowClass()` */
  readonly resolve?: (() => HandlerResolver) | undefined;
  readonly steps?: WorkflowStepStubs | undefined;
  /** Beside the workflows, such as those that do the work of steps; for each process. @default none */
  readonly handlers?: RuntimeOptions['handlers'] | undefined;
  readonly events: readonly CrashEvent[];
  /** How long everything takes at most after the last event, crash and take-over included. @default 10 minutes */
  readonly lastsMs?: number | undefined;
}

export interface CrashedRun {
  /** Undefined for the run in which nothing goes wrong. */
  readonly cut: Cut | undefined;
  /** The call that went wrong. */
  readonly hit: CountedCall | undefined;
  /** Of all workflows, as they stand in the end. */
  readonly workflows: readonly WorkflowRecord[];
  readonly runs: readonly StepRunRecord[];
  /** Such as a step that ran again after its end was recorded. */
  readonly violations: readonly string[];
  /** Ids of the messages on a topic, each once, in order. */
  messageIds(topic: string): Promise<readonly string[]>;
}

export interface CrashOptions {
  /** Ways of going wrong. @default all */
  readonly faults?: readonly Fault[] | undefined;
  /** Which of the calls, counted from 1. @default each */
  readonly calls?: ((count: number) => readonly number[]) | undefined;
}

const LASTS_MS = minutes(10);
/** Seldom: each scan is a call that can go wrong, and what is left behind must not need one to be found soon. */
const SCAN_MS = minutes(60);

/**
 * Runs the scenario without a fault, and then once for each of its calls and each fault: `for await (const { run } of
 * workflowCrashes(...))`.
 * @param newScenario called for each run @throws ConfigurationError
 */
export async function* workflowCrashes<S extends CrashScenario>(
  newScenario: () => S,
  options: CrashOptions = {},
): AsyncGenerator<{ readonly scenario: S; readonly run: CrashedRun }, void> {
  const check = new OptionChecker('workflowCrashes');
  if (typeof (newScenario as unknown) !== 'function')
    check.problem(`takes a function that makes the scenario, got ${describeValue(newScenario)}`);
  check.options(options, ['faults', 'calls']);
  check.throwIfAny();
  const first = newScenario();
  checkScenario(first);
  const { run, calls } = await runWith(first, undefined);
  yield { scenario: first, run };
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  for (const at of options.calls?.(calls) ?? all)
    for (const fault of options.faults ?? FAULTS) {
      const scenario = newScenario();
      yield { scenario, run: (await runWith(scenario, { at, fault })).run };
    }
}

function checkScenario(scenario: CrashScenario): void {
  const check = new OptionChecker('workflowCrashes');
  if (check.object('scenario', scenario, '{ definitions: [order], events: [...] }'))
    for (const name of ['definitions', 'events'])
      if (!Array.isArray(scenario[name]))
        check.problem(`"${name}" of the scenario must be a list, got ${describeValue(scenario[name])}`);
  check.throwIfAny();
}

async function runWith(
  scenario: CrashScenario,
  cut: Cut | undefined,
): Promise<{ readonly run: CrashedRun; readonly calls: number }> {
  const ledger = new StepLedger();
  const kept = ledger.watching(memoryWorkflowStore());
  await kept.open();
  const values = new SeededValues('workflow crashes');
  const random = (): number => values.next(0) / 2 ** 32;
  const names = scenario.definitions.map((definition) => referencedName(definition) ?? '');
  const world: CrashWorld = new CrashWorld(cut ?? { at: 0, fault: 'throws' }, async (transport, wrap) => {
    const logger = consoleLogger({ level: 'silent' });
    const runtime = await Runtime.start({ transport, handlers: scenario.handlers ?? [], logger, random });
    const store = wrap<WorkflowStore>(kept, WORKFLOW_STORE_METHODS);
    const { definitions, resolve } = scenario;
    const given = { runtime, store, definitions, resolve: resolve?.(), scanIntervalMs: SCAN_MS };
    // A process that ends in its start never comes to its end.
    void Workflows.start(stubbedOptions(given, scenario.steps, ledger)).catch(() => undefined);
    return runtime;
  });
  for (const name of names) world.broker.createSubscription(eventTopicName(name), EVENT_SUBSCRIPTION);
  await world.start();
  for (const event of scenario.events) {
    await world.pass(event.afterMs);
    await publish(world, event);
  }
  await world.pass(scenario.lastsMs ?? LASTS_MS);
  await world.pass(seconds(1));
  const workflows = await kept.list({ limit: 1_000 });
  const run: CrashedRun = {
    cut,
    hit: world.hit,
    workflows,
    runs: ledger.runs,
    violations: ledger.violations,
    messageIds: async (topic) => {
      if (!world.broker.topics().includes(world.broker.fullName(topic))) return [];
      const messages = await world.read(topic);
      return [...new Set(messages.map(({ properties }) => properties['pulsework-message-id'] ?? ''))];
    },
  };
  return { run, calls: world.calls };
}

/** As another service does: what it sent is with the broker. */
async function publish(world: CrashWorld, event: CrashEvent): Promise<void> {
  const name = referencedName(event.workflow) ?? '';
  const message = eventOf(event, world.clock.now());
  const properties = {};
  await world.broker.publish(eventTopicName(name), { payload: jsonCodec.encode(message), key: event.id, properties });
}

function eventOf(event: CrashEvent, nowMs: number): EventMessage {
  const about = { v: 1, id: event.id } as const;
  if ('start' in event) return { ...about, kind: 'start', input: event.start };
  const eventId = `${event.id}/${nowMs}`;
  if ('cancel' in event) return { ...about, kind: 'cancel', eventId };
  return { ...about, kind: 'signal', eventId, name: event.signal, payload: event.payload };
}
