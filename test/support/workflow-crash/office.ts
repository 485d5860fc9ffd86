// The world of a run: a broker and a store that survive, virtual time, and processes that do not. Equal programs do the same.
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import { jsonCodec } from '../../../src/core/codec.js';
import { Runtime, consoleLogger, days, hours, minutes, seconds } from '../../../src/index.js';
import type { Transport } from '../../../src/ports/transport.js';
import type { WorkflowKey, WorkflowSnapshot, WorkflowStore } from '../../../src/ports/workflow-store.js';
import { memoryWorkflowStore } from '../../../src/stores/memory/memory-workflow-store.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { readTopic } from '../../../src/testing/read-topic.js';
import { StepLedger } from '../../../src/testing/step-ledger.js';
import { EVENT_SUBSCRIPTION, eventTopicName } from '../../../src/workflow/event-message.js';
import type { EventMessage } from '../../../src/workflow/event-message.js';
import type { Command } from '../../../src/workflow/command.js';
import type { StepContext } from '../../../src/workflow/flow.js';
import type { StepStubs, WorkflowsOptions } from '../../../src/workflow/workflows-options.js';
import { KEPT_FROM, STEP_STUBS } from '../../../src/workflow/workflows-options.js';
import { Workflows } from '../../../src/workflow/workflows.js';
import { scattered } from '../seeded.js';
import type { Effect } from './ledger.js';
import { Ledger } from './ledger.js';
import type { ProcessClock } from './process-clock.js';
import type { CrashProgram, Happening, Mistake, Step } from './program.js';
import { attemptOf } from './step-moods.js';
import { STORIES } from './stories.js';
import { isRefused } from './story.js';
import { StoreWatch, mistaken } from './watched-store.js';
import type { FaultStep, WorkerPlace } from './worker.js';
import { Worker } from './worker.js';

/** What a process left is found by the next one, which looks so far ahead: no scan in between is needed. */
const SCAN_MS = hours(12);
/** Of virtual time: whatever has not ended by then never does. */
const LONGEST_MS = days(45);
/** After the end of all: for what comes twice. */
const AFTERWARDS_MS = minutes(3);
const RESTARTS_MS = [100, seconds(2), seconds(5), seconds(40), minutes(10)];
const LOGGER = consoleLogger({ level: 'silent' });

/** All that can be seen when it is over. */
export interface Seen {
  readonly workflows: readonly WorkflowSnapshot[];
  readonly effects: readonly Effect[];
  readonly violations: readonly string[];
  /** Ids on the topic of the story, each once. */
  readonly messageIds: readonly string[];
  readonly deadLetters: number;
  /** Events that are not acknowledged. */
  readonly backlog: number;
  readonly processes: number;
  /** Of the first process. */
  readonly calls: number;
}

export class Office implements WorkerPlace {
  readonly clock = new FakeClock();
  readonly broker = new EmbeddedBroker({ clock: this.clock });
  readonly store: WorkflowStore;
  readonly #program: CrashProgram;
  readonly #mistake: Mistake | undefined;
  readonly #kept = memoryWorkflowStore();
  readonly #steps = new StepLedger();
  readonly #watch = new StoreWatch();
  readonly #ledger = new Ledger();
  readonly #chance: () => number;
  readonly #workers: readonly Worker[];
  readonly #beganMs = this.clock.now();
  #processes = 0;
  /** Of the program, that have happened. */
  #happened = 0;
  #toHappen = 0;

  constructor(program: CrashProgram, mistake?: Mistake) {
    this.#program = program;
    this.#mistake = mistake;
    this.#chance = scattered(program.setting.seed);
    this.store = this.#watch.watching(this.#steps.watching(mistaken(this.#kept, mistake)));
    this.#workers = Array.from({ length: program.setting.workers }, () => new Worker(this));
  }

  async run(): Promise<Seen> {
    await this.#kept.open();
    for (const name of this.#story.names) this.broker.createSubscription(eventTopicName(name), EVENT_SUBSCRIPTION);
    for (const worker of this.#workers) worker.start();
    this.#schedule();
    const untilMs = this.clock.now() + LONGEST_MS;
    do while (!this.#isQuiet && this.clock.now() < untilMs) await this.clock.advanceToNextTimer();
    while (await this.#goesOn(untilMs));
    return this.#look();
  }

  faultsOfNext(): readonly FaultStep[] {
    const process = this.#processes++;
    return this.#program.steps.filter((step) => step.do === 'fault').filter((step) => step.process === process);
  }

  restartMs(): number {
    return RESTARTS_MS[Math.floor(this.#chance() * RESTARTS_MS.length)] ?? 0;
  }

  async serve(transport: Transport, store: WorkflowStore, clock: ProcessClock): Promise<void> {
    const random = scattered(this.#program.setting.seed * 100 + this.#processes);
    const runtime = await Runtime.start({ transport, handlers: [], logger: LOGGER, random });
    const given = this.#story.definitions(this.#ledger, this.#mistake);
    const stubs: StepStubs = (key, command) => (context) => this.#attempt(key, command, context, clock);
    const keptFrom = this.#program.setting.keeps ? 1 : Infinity;
    const forTests = { [STEP_STUBS]: stubs, [KEPT_FROM]: keptFrom };
    const own = { runtime, store, scanIntervalMs: SCAN_MS, retentionMs: days(365), ...forTests };
    const options: WorkflowsOptions = { ...own, ...given };
    await Workflows.start(options);
  }

  get #story() {
    return STORIES[this.#program.setting.story];
  }

  #attempt({ name, id }: WorkflowKey, command: Command, context: StepContext, clock: ProcessClock): Promise<unknown> {
    const step = command.kind === 'compensate' ? `undo ${command.name}` : command.name;
    const { idempotencyKey, attempt } = context;
    this.#steps.ran({ workflow: name, id, step, attempt, idempotencyKey });
    const { setting } = this.#program;
    const refused = isRefused(this.#program, command.name, id);
    const isBroken = this.clock.now() - this.#beganMs < setting.brokenUntilMs;
    return attemptOf(command, context, { setting, ledger: this.#ledger, clock, isRefused: refused, isBroken });
  }

  #schedule(): void {
    for (const [at, step] of this.#program.steps.entries()) {
      if (step.do === 'fault') continue;
      this.#toHappen += 1;
      this.clock.setTimer(step.atMs, () => {
        this.#happened += 1;
        this.#do(step, at);
      });
    }
  }

  #do(step: Exclude<Step, FaultStep>, at: number): void {
    if ('id' in step) return void this.#publish(step, at);
    const worker = this.#workers[step.worker % this.#workers.length];
    if (step.do === 'kill') worker?.kill();
    else worker?.[step.do](step.forMs);
  }

  /** As another service does: what it sent is with the broker. */
  async #publish(step: Happening, at: number): Promise<void> {
    const { signal, input, payload, family } = this.#story;
    const whole = family(step.id);
    // Whoever repaired it resumes all that may be stuck.
    for (const { name, id } of step.do === 'resume' ? whole : whole.slice(0, 1)) {
      const about = { v: 1, id, eventId: `${step.do}-${at}` } as const;
      const eventOf = (): EventMessage => {
        if (step.do === 'start') return { v: 1, id, kind: 'start', input: input(id) };
        if (step.do === 'signal') return { ...about, kind: 'signal', name: signal, payload: payload(step.value) };
        return { ...about, kind: step.do };
      };
      const message = { payload: jsonCodec.encode(eventOf()), key: id, properties: {} };
      await this.broker.publish(eventTopicName(name), message);
    }
  }

  get #isQuiet(): boolean {
    const isDone = this.#happened === this.#toHappen && this.#watch.open + this.#watch.unsent === 0;
    return this.#watch.hasBlocked || (isDone && this.#backlog === 0);
  }

  get #backlog(): number {
    const backlogs = this.#story.names.map(
      (name) => this.broker.stats(eventTopicName(name)).subscriptions.get(EVENT_SUBSCRIPTION)?.backlog ?? 0,
    );
    return backlogs.reduce((sum, backlog) => sum + backlog, 0);
  }

  /** What was quiet may not be so any more: a message that was on its way began another workflow. */
  async #goesOn(untilMs: number): Promise<boolean> {
    await this.clock.advanceBy(AFTERWARDS_MS);
    return !this.#isQuiet && this.clock.now() < untilMs;
  }

  async #look(): Promise<Seen> {
    const { topic } = this.#story;
    const records = await this.#kept.list({ limit: 1_000 });
    const workflows = await Promise.all(records.map((key) => this.#kept.read(key)));
    const isThere = (name: string): boolean => this.broker.topics().includes(this.broker.fullName(name));
    const messages =
      topic !== undefined && isThere(topic) ? await readTopic(this.broker, this.clock, topic, 'end') : [];
    return {
      workflows: workflows.filter((each) => each !== undefined),
      effects: this.#ledger.effects,
      violations: [...this.#steps.violations, ...this.#watch.violations],
      messageIds: [...new Set(messages.map(({ properties }) => properties['pulsework-message-id'] ?? ''))],
      deadLetters: this.#story.names.filter((name) => isThere(`${eventTopicName(name)}-${EVENT_SUBSCRIPTION}-DLQ`))
        .length,
      backlog: this.#backlog,
      processes: this.#processes,
      calls: this.#workers[0]?.calls ?? 0,
    };
  }
}
