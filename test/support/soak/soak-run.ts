// A soak: two runtimes under full load on one broker, one of which lives from the beginning to the end and one of which is
// drained, or closed, and started again and again. Now and then everything is let end: then nothing may be lost, no span
// open, and memory is measured.
import { EmbeddedBroker } from '../../../src/embedded.js';
import { CountingClock } from '../../bench/counting-clock.js';
import type { HeapSample } from './heap-judge.js';
import { judgeHeap, usedBytes } from './heap-judge.js';
import { JobLedger } from './job-ledger.js';
import { SUBSCRIBED } from './soak-handlers.js';
import { SoakLeaks } from './soak-leaks.js';
import { SoakLoad } from './soak-load.js';
import { DUPLICATE_WINDOW_MS, SoakService } from './soak-service.js';
import type { SoakPlace } from './soak-service.js';
import type { SoakFacts, SoakResult, SoakSettings } from './soak-settings.js';
import { SoakTelemetry } from './soak-telemetry.js';

/** The first fifth: caches fill, what is remembered of failures reaches its bound, code is compiled. */
const WARM_UP_SHARE = 0.2;
/** However long they take on a busy machine. */
const FEWEST_SAMPLES = 8;
const LOOK_AGAIN_MS = 10;
/** What has just closed may still be on its way out. */
const MAX_CLOSED_IN_MEMORY = 2;
/** Small, so that what the broker keeps of a ledger that is not full does not count as growth. */
const MAX_LEDGER_ENTRIES = 20;

/** A run ends by itself once nothing goes on any more. @param tell how far it is */
export async function runSoak(settings: SoakSettings, tell: (line: string) => void): Promise<SoakResult> {
  const telemetry = new SoakTelemetry();
  telemetry.start();
  return new SoakRun(settings, telemetry, tell).result();
}

class SoakRun {
  readonly #settings: SoakSettings;
  readonly #telemetry: SoakTelemetry;
  readonly #tell: (line: string) => void;
  readonly #leaks: SoakLeaks;
  readonly #brokerClock = new CountingClock();
  readonly #broker = new EmbeddedBroker({ clock: this.#brokerClock, maxLedgerEntries: MAX_LEDGER_ENTRIES });
  readonly #ledger = new JobLedger();
  readonly #load: SoakLoad;
  readonly #place: SoakPlace;
  readonly #startedMs = performance.now();
  readonly #samples: HeapSample[] = [];
  readonly #closed: WeakRef<object>[] = [];
  readonly #violations = new Set<string>();
  #restartedMs = performance.now();
  #restarts = 0;
  #logLines = 0;

  constructor(settings: SoakSettings, telemetry: SoakTelemetry, tell: (line: string) => void) {
    this.#settings = settings;
    this.#telemetry = telemetry;
    this.#tell = tell;
    this.#leaks = new SoakLeaks(settings.leaks);
    this.#load = new SoakLoad(this.#ledger, settings.seed);
    this.#place = {
      broker: this.#broker,
      ledger: this.#ledger,
      seen: (delivery) => this.#leaks.delivered(delivery),
      logged: () => void (this.#logLines += 1),
    };
  }

  async result(): Promise<SoakResult> {
    const steady = await SoakService.start(this.#place);
    let other = await SoakService.start(this.#place);
    this.#leaks.inLedger(this.#ledger);
    while (this.#elapsedMs < this.#settings.durationMs || this.#samples.length < FEWEST_SAMPLES) {
      this.#load.mostFail = this.#elapsedMs < WARM_UP_SHARE * this.#settings.durationMs;
      const load = this.#load.publish(steady.runtime, performance.now() + this.#settings.checkEveryMs);
      if (performance.now() - this.#restartedMs >= this.#settings.restartEveryMs) other = await this.#restart(other);
      await load;
      await this.#quiet();
      await this.#settle(steady);
      await this.#sample();
    }
    for (const service of [other, steady]) this.#violated(await service.stop('drain'));
    await this.#afterClose();
    this.#judgeHeap();
    return { violations: [...this.#violations], facts: this.#facts() };
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** In the middle of the load; by turns a drain, and a close that cuts runs short. */
  async #restart(service: SoakService): Promise<SoakService> {
    this.#restartedMs = performance.now();
    this.#restarts += 1;
    this.#leaks.beforeStop(service);
    this.#violated(await service.stop(this.#restarts % 2 === 1 ? 'drain' : 'close'));
    this.#closed.push(new WeakRef(service.runtime));
    return SoakService.start(this.#place);
  }

  /** Everything that is on its way ends. */
  async #quiet(): Promise<void> {
    const { spans } = this.#telemetry;
    await this.#until(() => this.#ledger.open === 0 && this.#backlog === 0 && spans.open === 0);
    this.#violated(this.#ledger.violations());
    this.#violated(spans.violations());
    if (this.#backlog > 0) this.#violated([`a backlog of ${this.#backlog} is left where nothing is under way`]);
  }

  /** What is remembered for a while of the messages of the load is replaced by what a few messages leave, the same each time. */
  async #settle({ runtime }: SoakService): Promise<void> {
    for (let generation = 0; generation < 2; generation++) {
      await new Promise((resolve) => setTimeout(resolve, DUPLICATE_WINDOW_MS * 1.2));
      await this.#load.publishSome(runtime);
      await this.#quiet();
    }
  }

  async #sample(): Promise<void> {
    const bytes = await usedBytes();
    this.#samples.push({ atMs: this.#elapsedMs, bytes });
    const closed = this.#closed.filter((each) => each.deref() !== undefined).length;
    if (closed > MAX_CLOSED_IN_MEMORY) this.#violated(['closed runtimes are kept in memory']);
    const seconds = Math.round(this.#elapsedMs / 1_000);
    const done = `${this.#ledger.ended} messages, ${this.#restarts} restarts`;
    const heap = `heap ${(bytes / 2 ** 20).toFixed(2)} MiB`;
    this.#tell(`${seconds} s, ${done}, ${heap}, ${this.#violations.size} violated`);
  }

  async #until(holds: () => boolean): Promise<void> {
    const giveUpAtMs = performance.now() + this.#settings.quietLimitMs;
    while (!holds() && performance.now() < giveUpAtMs)
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }

  async #afterClose(): Promise<void> {
    this.#violated(await this.#telemetry.stop());
    this.#violated(this.#telemetry.spans.violations());
    const timers = this.#brokerClock.pendingTimers;
    if (timers > 0) this.#violated([`${timers} timers of the broker and its transports are left after close`]);
  }

  get #backlog(): number {
    const backlogs = SUBSCRIBED.map(
      ([topic, subscription]) => this.#broker.stats(topic).subscriptions.get(subscription)?.backlog ?? 0,
    );
    return backlogs.reduce((total, backlog) => total + backlog, 0);
  }

  #judgeHeap(): void {
    const { growth, grownBytes, isFlat } = this.#heap;
    if (isFlat) return;
    const [share, mebibytes] = [(growth * 100).toFixed(1), (grownBytes / 2 ** 20).toFixed(1)];
    this.#violated([`the heap grew by ${share} % (${mebibytes} MiB) after warm-up`]);
  }

  get #heap(): ReturnType<typeof judgeHeap> {
    const { maxGrowth, slackBytes } = this.#settings;
    return judgeHeap(this.#samples, { warmUpShare: WARM_UP_SHARE, maxGrowth, slackBytes });
  }

  #facts(): SoakFacts {
    const { firstBytes, lastBytes, growth, samples } = this.#heap;
    const { spans, collections, series } = this.#telemetry;
    return {
      messages: this.#ledger.ended,
      repeated: this.#ledger.repeated,
      restarts: this.#restarts,
      spans: spans.ended,
      logLines: this.#logLines,
      collections,
      series,
      samples,
      firstHeapBytes: firstBytes,
      lastHeapBytes: lastBytes,
      heapGrowth: growth,
    };
  }

  #violated(violations: readonly string[]): void {
    for (const violation of violations) this.#violations.add(violation);
  }
}
