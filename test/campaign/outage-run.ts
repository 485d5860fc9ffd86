// One run of `outage`: the broker is gone for a while in the middle of settlements. Afterwards nothing is unsettled: every
// job is done or a dead letter, its follow-ups are there, and nothing waits, here or at the broker.
import { setTimeout as sleep } from 'node:timers/promises';
import { Runtime } from '../../src/index.js';
import type { SettlementReport } from '../../src/index.js';
import { wire } from '../../src/wire.js';
import type { WireOptions } from '../../src/wire.js';
import { serviceFacts, serviceViolations } from '../support/crash/service-checks.js';
import { WORKERS, serviceHandler } from '../support/crash/service-jobs.js';
import type { Job } from '../support/crash/service-jobs.js';
import { ServicePlace } from '../support/crash/service-place.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';

/** Their settlements acknowledge, publish follow-ups, ask for redelivery, republish and dead-letter. */
const KINDS = ['plain', 'follow', 'flaky', 'late', 'throwing', 'deferred', 'hopeless', 'poisoned', 'wrong'] as const;
const JOBS = 270;
/** The broker goes when so many settlements were performed. */
const GONE_AT = 60;
const LOOK_AGAIN_MS = 100;
/** For every repeated call to come around: the longest backoff between them is a minute. */
const SETTLED_LIMIT_MS = 180_000;

export interface Outage {
  /** Frozen: connections stay and nothing answers. Killed: they are lost, and nobody is there. */
  readonly how: 'frozen' | 'killed';
  readonly durationMs: number;
  /** @default those of a service */
  readonly wire?: Partial<WireOptions> | undefined;
  /** @default that of a service */
  readonly callTimeoutMs?: number | undefined;
}

export interface OutageResult {
  readonly violations: readonly string[];
  /** Settlements that were performed before, and that were under way or still to come then. */
  readonly before: number;
  readonly after: number;
  /** From the broker's return until nothing was left, milliseconds. */
  readonly settledAfterMs: number;
}

/** @param broker is the caller's own. */
export async function runOutage(broker: RealPulsar, outage: Outage): Promise<OutageResult> {
  const place = await ServicePlace.prepare(broker);
  const jobs = Array.from({ length: JOBS }, (_, index): Job => {
    const kind = KINDS[index % KINDS.length]!;
    return { id: `${kind}-${index}`, kind, takesMs: index % 20 };
  });
  await place.publish(jobs);
  const run = new OutageRun(broker, place, jobs, outage);
  return run.result();
}

class OutageRun {
  readonly #broker: RealPulsar;
  readonly #place: ServicePlace;
  readonly #jobs: readonly Job[];
  readonly #outage: Outage;
  readonly #told: string[] = [];
  readonly #reports: SettlementReport[] = [];
  #goes: () => void = () => undefined;
  readonly #gone = new Promise<void>((goes) => (this.#goes = goes));

  constructor(broker: RealPulsar, place: ServicePlace, jobs: readonly Job[], outage: Outage) {
    this.#broker = broker;
    this.#place = place;
    this.#jobs = jobs;
    this.#outage = outage;
  }

  async result(): Promise<OutageResult> {
    const runtime = await this.#start();
    try {
      await this.#gone;
      const before = this.#reports.length;
      await this.#beGone();
      const since = performance.now();
      const left = await this.#settled(runtime);
      const settledAfterMs = performance.now() - since;
      const facts = await serviceFacts(this.#place, this.#jobs, this.#told);
      const violations = [...left, ...serviceViolations(this.#jobs, facts)];
      return { violations, before, after: this.#reports.length - before, settledAfterMs };
    } finally {
      await runtime.drain({ deadlineMs: 1_000 });
    }
  }

  #start(): Promise<Runtime> {
    const { serviceUrl, jobs, results } = this.#place;
    // Few may wait: what waits beyond them is republished, which is one more settlement to be cut.
    const options = { type: 'shared', concurrency: 16, retryTopic: true, maxHeld: 16 } as const;
    const settings = { serviceUrl, jobs, results, options, maxDeliveries: 3, isIdempotent: false };
    return Runtime.start({
      transport: wire({ serviceUrl, ...this.#outage.wire }),
      handlers: [serviceHandler(settings, (line) => void this.#told.push(line))],
      logger: SILENT,
      callTimeoutMs: this.#outage.callTimeoutMs,
      telemetry: { onSettled: (report) => this.#report(report) },
    });
  }

  /** From within a settlement: others are under way. */
  #report(report: SettlementReport): void {
    this.#reports.push(report);
    if (this.#reports.length !== GONE_AT) return;
    if (this.#outage.how === 'frozen') this.#broker.freeze();
    this.#goes();
  }

  async #beGone(): Promise<void> {
    const { how, durationMs } = this.#outage;
    if (how === 'killed') await this.#broker.kill();
    await sleep(durationMs);
    if (how === 'killed') await this.#broker.restart();
    else this.#broker.thaw();
  }

  /** Until nothing is left at the broker and nothing waits here; what is left when that takes too long. */
  async #settled(runtime: Runtime): Promise<readonly string[]> {
    const giveUpAt = Date.now() + SETTLED_LIMIT_MS;
    for (;;) {
      const backlog = await this.#place.backlog().catch(() => Infinity); // It may still be loading its topics.
      const { running, held, kept, state } = runtime.subscription(WORKERS, this.#place.jobs).health();
      if (backlog === 0 && running + held + kept === 0 && state === 'running') return [];
      if (Date.now() > giveUpAt) {
        return [`left unsettled: ${backlog} at the broker, ${running} run, ${held} held, ${kept} kept, ${state}`];
      }
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

const nothing = (): void => undefined;
const SILENT = { isEnabled: () => false, debug: nothing, info: nothing, warn: nothing, error: nothing };
