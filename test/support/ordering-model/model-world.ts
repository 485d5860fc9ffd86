// Runs one program: a broker on virtual time, the processes on it, and at the end everything that must empty it.
import { EmbeddedBroker } from '../../../src/embedded.js';
import { FakeClock } from '../../../src/testing.js';
import { ModelProcess, SOURCE, SUBSCRIPTION } from './model-process.js';
import { Observer } from './observer.js';
import type { Job, Program, Step } from './program.js';
import { isCalm } from './program.js';

const FULL_NAME = `persistent://public/default/${SOURCE}`;
/** Longer than a call may take, the end of a drain, and the longest pause between repeated calls. */
const STEP_OF_EMPTYING_MS = 10_000;
const MOST_STEPS_OF_EMPTYING = 360;

export class ModelWorld {
  readonly observer: Observer;
  readonly #program: Program;
  readonly #clock = new FakeClock();
  readonly #broker: EmbeddedBroker;
  readonly #processes: ModelProcess[] = [];
  #allSucceed = false;

  constructor(program: Program) {
    this.#program = program;
    const { mode, partitions, consistentHashing, lookAhead, maxRetryingPositions, maxDeliveries, latencyMs } =
      program.setting;
    this.observer = new Observer({
      source: FULL_NAME,
      deadLetters: `${FULL_NAME}-${SUBSCRIPTION}-DLQ`,
      maxDeliveries,
      isCalm: isCalm(program),
      nowMs: () => this.#clock.now(),
    });
    this.#broker = new EmbeddedBroker({
      clock: this.#clock,
      store: this.observer,
      keySharedNegativeAckOrdering: mode !== 'broker-cannot',
      keySharedConsistentHashing: consistentHashing,
      keySharedLookAheadPerConsumer: lookAhead,
      keySharedMaxRetryingPositions: maxRetryingPositions,
    });
    if (partitions > 1) this.#broker.createPartitionedTopic(SOURCE, partitions);
    if (latencyMs > 0) {
      const some = { probability: 0.5, ms: [1, latencyMs] } as const;
      this.#broker.inject({ topics: [SOURCE], delay: some, slowAcknowledge: some });
    }
  }

  async run(): Promise<void> {
    await this.#join();
    for (const step of this.#program.steps) await this.#step(step);
    await this.#empty();
    this.observer.checkEnd();
    await this.#end();
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'publish':
        return this.#publish(step.jobs);
      case 'publish-batch':
        return this.#publishBatch(step.jobs);
      case 'pass':
        return this.#clock.advanceBy(step.ms);
      case 'join':
        return this.#join();
      case 'unload':
        this.#unload(step.at);
        return;
      case 'restart':
        this.#restart();
        return;
      case 'release':
      case 'skip':
        this.#decide(step.do, step.at);
        return;
      case 'drain':
      case 'crash':
      case 'fault':
      case 'pause':
      case 'resume':
        this.#toProcess(step);
    }
  }

  async #publish(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs) await this.#broker.publish(SOURCE, this.#messageOf(job));
  }

  async #publishBatch(jobs: readonly Job[]): Promise<void> {
    const messages = jobs.map((job) => this.#messageOf(job));
    await this.#broker.publishBatch(SOURCE, messages);
  }

  #messageOf(job: Job): { payload: Uint8Array; key: string | undefined; properties: Record<string, string> } {
    const number = this.observer.announce(job);
    this.observer.tell(`m${number} of ${job.key ?? 'no key'} is published`);
    return { payload: Buffer.from(JSON.stringify(number)), key: job.key, properties: {} };
  }

  get #partitions(): readonly string[] {
    return this.#broker.partitionsOf(SOURCE);
  }

  /** As many may be there as the program says; with one, it joins only when the one before has left. */
  async #join(): Promise<void> {
    const { setting } = this.#program;
    const { length: connected } = this.#processes.filter(({ isConnected }) => isConnected);
    if (connected >= setting.maxProcesses) return;
    const number = this.#processes.length + 1;
    this.observer.tell(`process ${number} joins`);
    const { observer } = this;
    const facts = { number, broker: this.#broker, setting, observer, allSucceed: () => this.#allSucceed };
    const process = new ModelProcess(facts);
    this.#processes.push(process);
    await process.start();
  }

  #restart(): void {
    this.observer.tell('the broker restarts');
    for (const topic of this.#partitions) this.observer.unloaded(topic);
    this.#broker.restart();
  }

  #unload(at: number): void {
    const partitions = this.#partitions;
    const topic = partitions[at % partitions.length]!;
    this.observer.tell(`${topic} is unloaded`);
    this.observer.unloaded(topic);
    this.#broker.unload(topic);
  }

  #toProcess(step: Extract<Step, { do: 'drain' | 'crash' | 'fault' | 'pause' | 'resume' }>): void {
    const there = this.#processes.filter(({ isThere }) => isThere);
    const process = there[step.at % there.length];
    if (process === undefined) return;
    this.observer.tell(`process ${process.number}: ${step.do}${step.do === 'fault' ? ` ${step.fault}` : ''}`);
    if (step.do === 'fault') process.failNextCall(step.fault);
    else process[step.do]();
  }

  #decide(decision: 'release' | 'skip', at: number): void {
    const blocked = this.#processes.flatMap((process) => process.blockedKeys.map((key) => ({ process, key })));
    const chosen = blocked[at % blocked.length];
    if (chosen === undefined) return;
    const { process, key } = chosen;
    this.observer.tell(`process ${process.number}: ${decision} of ${String(key.key)}`);
    this.observer.decided(key.topic, String(key.key));
    process[decision](key);
  }

  /** Nothing goes wrong any more, every run succeeds, and a person decides about every key that waits. */
  async #empty(): Promise<void> {
    this.observer.tell('everything succeeds from now on');
    this.#allSucceed = true;
    for (const process of this.#processes) {
      process.failNoCall();
      if (process.isThere) process.resume();
    }
    for (let left = MOST_STEPS_OF_EMPTYING; left > 0 && this.observer.unacknowledged.length > 0; left--) {
      if (!this.#processes.some(({ isThere }) => isThere)) await this.#join();
      this.#decide(left % 2 === 0 ? 'release' : 'skip', 0);
      await this.#clock.advanceBy(STEP_OF_EMPTYING_MS);
    }
  }

  async #end(): Promise<void> {
    for (const process of this.#processes) if (process.isThere) process.drain();
    for (let left = MOST_STEPS_OF_EMPTYING; left > 0 && this.#processes.some((each) => each.isConnected); left--)
      await this.#clock.advanceBy(STEP_OF_EMPTYING_MS);
    const stuck = this.#processes.filter(({ isConnected }) => isConnected);
    for (const { number } of stuck) this.observer.violated('wedge', `process ${number} never ended its drain`);
  }
}
