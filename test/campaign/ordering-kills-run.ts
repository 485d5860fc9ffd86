// One run of `ordering-kills`: processes that keep order per key work off their jobs on a real broker, some are killed and
// others come, and in the end it is looked what each of them told.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { deadLetterTopicName } from '../../src/index.js';
import { WireClient } from '../../src/wire.js';
import type { BrokerAddress } from '../support/crash/service-place.js';
import { ServiceProcess } from '../support/crash/service-process.js';
import { LEDGER, becomesDeadLetter } from '../support/ordered/ordered-jobs.js';
import type { OrderedJob, OrderedSettings } from '../support/ordered/ordered-jobs.js';
import { receive } from '../support/received.js';
import { grouped, orderedViolations } from './ordering-kills-checks.js';
import type { OrderedEvent } from './ordering-kills-checks.js';
import { orderedPlan } from './ordering-kills-plan.js';
import type { OrderedPlan, OrderedStep } from './ordering-kills-plan.js';

const PROGRAM = 'test/support/ordered/ordered-program.ts';
const LOOK_AGAIN_MS = 20;
/** So long it is waited for the runs that a step wants: on a busy machine a process takes seconds to start. */
const STEP_LIMIT_MS = 60_000;
const WORK_LIMIT_MS = 120_000;
/** For dead letters that must be there, and then for others. */
const LETTER_QUIET_MS = 15_000;
const SURPLUS_QUIET_MS = 300;

/** Of all runs of a campaign. */
export interface OrderedTotals {
  messages: number;
  runs: number;
  kills: number;
  drains: number;
  joins: number;
  /** Runs that a kill cut. */
  cut: number;
  /** Messages that more than one process worked on. */
  moved: number;
}

export const NO_TOTALS: Readonly<OrderedTotals> = {
  ...{ messages: 0, runs: 0, kills: 0, drains: 0, joins: 0, cut: 0, moved: 0 },
};

/** Gives what did not hold. */
export async function runOrderingKills(
  seed: number,
  broker: BrokerAddress,
  totals: OrderedTotals,
): Promise<readonly string[]> {
  const run = new OrderingKillsRun(orderedPlan(seed), broker);
  try {
    return await run.violations(totals);
  } finally {
    await run.end();
  }
}

interface Life {
  readonly process: ServiceProcess;
  readonly number: number;
}

class OrderingKillsRun {
  readonly #plan: OrderedPlan;
  readonly #broker: BrokerAddress;
  readonly #jobs = `persistent://public/default/ordered-${randomUUID()}`;
  readonly #settings: OrderedSettings;
  readonly #lives: Life[] = [];
  #living: Life[] = [];
  readonly #killedMs = new Map<number, number>();
  readonly #problems: string[] = [];

  constructor(plan: OrderedPlan, broker: BrokerAddress) {
    this.#plan = plan;
    this.#broker = broker;
    this.#settings = { serviceUrl: broker.serviceUrl, jobs: this.#jobs, concurrency: plan.concurrency };
  }

  async violations(totals: OrderedTotals): Promise<readonly string[]> {
    const { jobs, steps, processes } = this.#plan;
    await this.#broker.admin.createTopic(this.#jobs);
    await this.#broker.admin.createSubscription(this.#jobs, LEDGER);
    await Promise.all(Array.from({ length: processes }, () => this.#start()));
    await Promise.all(this.#living.map(({ process }) => process.untilTold('ready')));
    const publishing = this.#publish(jobs);
    for (const step of steps) await this.#take(step);
    await publishing;
    const backlog = await this.#workOff();
    for (const life of this.#living) await this.#terminate(life);
    const events = this.#events();
    this.#count(totals, events);
    const letters = await this.#letters();
    return [...this.#problems, ...orderedViolations({ jobs, events, killedMs: this.#killedMs, letters, backlog })];
  }

  /** Whatever still lives. */
  async end(): Promise<void> {
    await Promise.all(this.#living.map(({ process }) => process.kill()));
  }

  async #start(): Promise<void> {
    const process = await ServiceProcess.start(this.#settings, { program: PROGRAM });
    const life = { process, number: this.#lives.length };
    this.#lives.push(life);
    this.#living.push(life);
  }

  async #take({ runs, delayMs, kind, which, replacedAfterMs }: OrderedStep): Promise<void> {
    const giveUpAt = Date.now() + STEP_LIMIT_MS;
    while (this.#runsSoFar() < runs && Date.now() < giveUpAt) await sleep(LOOK_AGAIN_MS);
    await sleep(delayMs);
    const life = this.#living[Math.floor(which * this.#living.length)];
    let ending: Promise<void> | undefined;
    if (kind === 'kill' && life !== undefined) await this.#kill(life);
    if (kind === 'drain' && life !== undefined) ending = this.#terminate(life);
    await sleep(replacedAfterMs);
    await this.#start();
    await ending;
  }

  async #kill(life: Life): Promise<void> {
    this.#living = this.#living.filter((each) => each !== life);
    if (life.process.hasEnded) this.#problems.push(`process ${life.number} ended by itself`);
    this.#killedMs.set(life.number, Number(process.hrtime.bigint()) / 1e6);
    await life.process.kill();
  }

  async #terminate(life: Life): Promise<void> {
    this.#living = this.#living.filter((each) => each !== life);
    // One that does not listen yet would simply end.
    await life.process.untilTold('ready');
    const { exit, errors } = await life.process.terminate();
    if (exit !== 0) this.#problems.push(`process ${life.number} ended with ${exit ?? '?'}: ${errors}`);
  }

  #runsSoFar(): number {
    return this.#lives.reduce(
      (sum, { process }) => sum + process.told.filter((line) => line.includes(' run ')).length,
      0,
    );
  }

  async #publish(jobs: readonly OrderedJob[]): Promise<void> {
    const client = new WireClient({ serviceUrl: this.#broker.serviceUrl });
    const batching = this.#plan.batched ? { maxMessages: 5, byKey: true } : false;
    const publisher = await client.publisher(this.#jobs, { batching });
    const receipts = jobs.map((job) => {
      const { n, key } = job;
      const message = { payload: Buffer.from(JSON.stringify(job)), key, properties: { n: String(n) } };
      return publisher.publish(message, publisher.nextSequenceId());
    });
    await Promise.all(receipts);
    await client.close();
  }

  /** Waits until nothing is left. Gives what is. */
  async #workOff(): Promise<number> {
    const giveUpAt = Date.now() + WORK_LIMIT_MS;
    for (;;) {
      const { subscriptions } = await this.#broker.admin.stats(this.#jobs);
      const backlog = subscriptions[LEDGER]?.msgBacklog ?? 0;
      if (backlog === 0 || Date.now() > giveUpAt) return backlog;
      await sleep(5 * LOOK_AGAIN_MS);
    }
  }

  #events(): readonly OrderedEvent[] {
    return this.#lives.flatMap(({ process, number }) =>
      process.told.flatMap((line): OrderedEvent[] => {
        const [ns = '', word = '', n = '', detail = ''] = line.split(' ');
        if (word !== 'run' && word !== 'end' && word !== 'settled') return [];
        return [{ atMs: Number(ns) / 1e6, life: number, word, n: Number(n), detail }];
      }),
    );
  }

  async #letters(): Promise<ReadonlySet<number>> {
    const expected = this.#plan.jobs.filter(({ kind }) => becomesDeadLetter(kind)).length;
    const client = new WireClient({ serviceUrl: this.#broker.serviceUrl });
    try {
      const topics = [deadLetterTopicName(this.#jobs, LEDGER)];
      const subscription = await client.subscribe({ topics, subscription: `reader-${randomUUID()}` });
      const letters = new Set<number>();
      for (;;) {
        const quietMs = letters.size < expected ? LETTER_QUIET_MS : SURPLUS_QUIET_MS;
        const [message] = await receive(subscription, 1, quietMs);
        if (message === undefined) return letters;
        letters.add(Number(message.properties['n']));
      }
    } finally {
      await client.close();
    }
  }

  #count(totals: OrderedTotals, events: readonly OrderedEvent[]): void {
    const runs = events.filter(({ word }) => word === 'run');
    const ends = events.filter(({ word }) => word === 'end');
    const lives = grouped(runs, ({ n }) => n);
    totals.runs += runs.length;
    totals.cut += runs.length - ends.length;
    const { steps, jobs } = this.#plan;
    totals.messages += jobs.length;
    totals.kills += steps.filter(({ kind }) => kind === 'kill').length;
    totals.drains += steps.filter(({ kind }) => kind === 'drain').length;
    totals.joins += steps.filter(({ kind }) => kind === 'join').length;
    totals.moved += [...lives.values()].filter((each) => new Set(each.map(({ life }) => life)).size > 1).length;
  }
}
