// One run of `exactly-once`: processes that consume, transform and produce in transactions on a real broker are killed, and so is
// the broker. In the end Java's client reads what they made: each result once.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { WireClient } from '../../src/wire.js';
import { ServiceProcess } from '../support/crash/service-process.js';
import type { ExactlyOnceJob, ExactlyOnceSettings } from '../support/exactly-once/exactly-once-service.js';
import { WORKERS } from '../support/exactly-once/exactly-once-service.js';
import type { PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { scattered } from '../support/seeded.js';

const READER = 'java';
const PROGRAM = 'test/support/exactly-once/exactly-once-program.ts';
const LOOK_AGAIN_MS = 50;
/** Open transactions of the dead end by themselves after it, and their messages come again. */
const TIMEOUT_MS = 4_000;
/** After the last kill: for what is left, whatever the broker still has to load. */
const WORK_LIMIT_MS = 300_000;
/** In Java's client: for results that must be there, and then for others. */
const QUIET_MS = 20_000;
const SURPLUS_QUIET_MS = 2_000;
const READ_AT_ONCE = 1_000;

export interface ExactlyOncePlan {
  readonly seed: number;
  readonly jobs: number;
  /** Processes that are killed. */
  readonly kills: number;
  readonly brokerKills: number;
  /** Processes that work at a time. */
  readonly processes: number;
  readonly options: ExactlyOnceSettings['options'];
}

/** Of all runs of a campaign. */
export interface ExactlyOnceTotals {
  jobs: number;
  kills: number;
  brokerKills: number;
  /** Settlements that processes told of; what was cut before it was told is not among them. */
  told: number;
}

/** @param broker is the caller's own, with transactions. Gives what did not hold. */
export async function runExactlyOnce(
  plan: ExactlyOncePlan,
  broker: RealPulsar,
  java: PulsarPeer,
  totals: ExactlyOnceTotals,
): Promise<readonly string[]> {
  const run = new ExactlyOnceRun(plan, broker, java);
  try {
    return await run.violations(totals);
  } finally {
    await run.end();
  }
}

class ExactlyOnceRun {
  readonly #plan: ExactlyOncePlan;
  readonly #broker: RealPulsar;
  readonly #java: PulsarPeer;
  readonly #settings: ExactlyOnceSettings;
  readonly #random: () => number;
  readonly #all: ServiceProcess[] = [];
  #living: ServiceProcess[] = [];
  readonly #problems: string[] = [];

  constructor(plan: ExactlyOncePlan, broker: RealPulsar, java: PulsarPeer) {
    this.#plan = plan;
    this.#broker = broker;
    this.#java = java;
    this.#random = scattered(plan.seed);
    const name = (what: string): string => `persistent://public/default/${what}-${randomUUID()}`;
    const topics = { jobs: name('jobs'), results: name('results'), journal: name('journal') };
    this.#settings = { serviceUrl: broker.serviceUrl, ...topics, options: plan.options, timeoutMs: TIMEOUT_MS };
  }

  async violations(totals: ExactlyOnceTotals): Promise<readonly string[]> {
    const { jobs, kills, brokerKills, processes } = this.#plan;
    const { admin } = this.#broker;
    const { jobs: source, ...outputs } = this.#settings;
    // What nobody has a subscription for is gone when the broker comes back.
    const readers = [
      [source, WORKERS] as const,
      [outputs.results, READER] as const,
      [outputs.journal, READER] as const,
    ];
    for (const [topic, subscription] of readers) {
      await admin.createTopic(topic);
      await admin.createSubscription(topic, subscription);
    }
    await this.#publish();
    await Promise.all(Array.from({ length: processes }, () => this.#start()));
    const steps = kills + brokerKills;
    for (let step = 1; step <= steps; step++) {
      await this.#untilTold(Math.floor((step * jobs) / (steps + 2)));
      await sleep(Math.floor(this.#random() * 100));
      // The broker's turns are spread over all of them.
      const isBrokers = Math.floor((step * brokerKills) / steps) > Math.floor(((step - 1) * brokerKills) / steps);
      if (isBrokers) await this.#killBroker();
      else await this.#killOne();
    }
    const left = await this.#workOff();
    await Promise.all(this.#living.map((life) => this.#terminate(life)));
    totals.jobs += jobs;
    totals.kills += kills;
    totals.brokerKills += brokerKills;
    totals.told += this.#told;
    const wrong = [await this.#notOnce(outputs.results), await this.#notOnce(outputs.journal)];
    return [...this.#problems, ...(left === 0 ? [] : [`a backlog of ${left} is left`]), ...wrong.flat()];
  }

  /** Whatever still lives. */
  async end(): Promise<void> {
    await Promise.all(this.#living.map((life) => life.kill()));
  }

  get #told(): number {
    return this.#all.reduce((sum, { told }) => sum + told.filter((line) => line === 'settled').length, 0);
  }

  async #start(): Promise<void> {
    const life = await ServiceProcess.start(this.#settings, { program: PROGRAM });
    this.#all.push(life);
    this.#living.push(life);
  }

  async #killOne(): Promise<void> {
    const victim = this.#living[Math.floor(this.#random() * this.#living.length)];
    if (victim === undefined) return;
    this.#living = this.#living.filter((each) => each !== victim);
    if (victim.hasEnded) this.#problems.push(`a process ended by itself: ${(await victim.ended).errors}`);
    await victim.kill();
    await this.#start();
  }

  async #killBroker(): Promise<void> {
    await this.#broker.kill();
    await sleep(1_000);
    await this.#broker.restart({ transactions: true });
  }

  async #terminate(life: ServiceProcess): Promise<void> {
    await life.untilTold('ready');
    const { exit, errors } = await life.terminate();
    if (exit !== 0) this.#problems.push(`a process ended with ${exit ?? '?'}: ${errors}`);
  }

  async #untilTold(count: number): Promise<void> {
    const giveUpAt = Date.now() + WORK_LIMIT_MS;
    while (this.#told < count) {
      const dead = this.#living.find(({ hasEnded }) => hasEnded);
      if (dead !== undefined) throw new Error(`a process ended by itself: ${(await dead.ended).errors}`);
      if (Date.now() > giveUpAt)
        throw new Error(`only ${this.#told} of ${count} settlements within ${WORK_LIMIT_MS} ms`);
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async #publish(): Promise<void> {
    const client = new WireClient({ serviceUrl: this.#broker.serviceUrl });
    const publisher = await client.publisher(this.#settings.jobs, { batching: { maxMessages: 10 } });
    const publish = (job: ExactlyOnceJob): Promise<unknown> =>
      publisher.publish({ payload: Buffer.from(JSON.stringify(job)), key: `key-${job.n % 97}`, properties: {} });
    const jobs = Array.from({ length: this.#plan.jobs }, (_, n) => {
      return { n, takesMs: Math.floor(this.#random() * 5), isFlaky: this.#random() < 0.01 };
    });
    await Promise.all(jobs.map(publish));
    await client.close();
  }

  /** Waits until nothing is left. Gives what is. */
  async #workOff(): Promise<number> {
    const giveUpAt = Date.now() + WORK_LIMIT_MS;
    for (;;) {
      const { subscriptions } = await this.#broker.admin.stats(this.#settings.jobs);
      const backlog = subscriptions[WORKERS]?.msgBacklog ?? 0;
      if (backlog === 0 || Date.now() > giveUpAt) return backlog;
      await sleep(5 * LOOK_AGAIN_MS);
    }
  }

  /** What Java's client does not read exactly once from `topic`. */
  async #notOnce(topic: string): Promise<readonly string[]> {
    const consumer = await this.#java.subscribe(this.#broker.serviceUrl, topic, { subscription: READER });
    const counts = new Map<number, number>();
    for (let left = this.#plan.jobs; ;) {
      const wanted = Math.min(READ_AT_ONCE, Math.max(left, 1));
      const read = await consumer.receive(wanted, left > 0 ? QUIET_MS : SURPLUS_QUIET_MS);
      for (const { value } of read) counts.set(Number(value), (counts.get(Number(value)) ?? 0) + 1);
      left -= read.length;
      if (read.length < wanted) break;
    }
    await consumer.close();
    const wrong = Array.from({ length: this.#plan.jobs }, (_, n) => n).filter((n) => counts.get(n) !== 1);
    const surplus = [...counts.keys()].filter((n) => !(n >= 0 && n < this.#plan.jobs));
    if (wrong.length + surplus.length === 0) return [];
    const shown = wrong.slice(0, 10).map((n) => `${n} is there ${counts.get(n) ?? 0} times`);
    return [
      `${topic}: ${wrong.length} results are not there once (${shown.join(', ')}), ${surplus.length} are no results`,
    ];
  }
}
