// Full load: as many jobs on their way as there may be, of every kind, as the seed decides.
import type { Runtime } from '../../../src/index.js';
import type { Job, JobKind, JobLedger } from './job-ledger.js';
import { BATCHED, KEYED, SINGLES } from './soak-handlers.js';

const MAX_OPEN = 2_000;
/** Published at a time. */
const BURST = 50;
const KEYS = 40;
const DEFER_MS = 80;

type Random = () => number;

/** Numbers in [0, 1) that are the same every time. */
export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export class SoakLoad {
  /** Whether half of the jobs fail at first: what is remembered of failures has a bound, which is soon reached then. */
  mostFail = false;
  readonly #ledger: JobLedger;
  readonly #random: Random;
  readonly #places = new Map<string, number>();
  #lastId = 0;

  constructor(ledger: JobLedger, seed: number) {
    this.#ledger = ledger;
    this.#random = seeded(seed);
  }

  /** Publishes through `runtime` until the time has come. @param untilMs by `performance.now()` */
  async publish(runtime: Runtime, untilMs: number): Promise<void> {
    while (performance.now() < untilMs) {
      if (this.#ledger.open > MAX_OPEN - BURST) {
        await Promise.race([this.#ledger.changed(), atTime(untilMs)]);
        continue;
      }
      await this.publishSome(runtime);
    }
  }

  async publishSome(runtime: Runtime): Promise<void> {
    await Promise.all(Array.from({ length: BURST }, () => this.#publishOne(runtime)));
  }

  #publishOne(runtime: Runtime): Promise<unknown> {
    const random = this.#random();
    if (random < 0.15) return this.#publishKeyed(runtime);
    const job = this.#job(this.#kind());
    this.#ledger.add(job);
    return runtime.publisher(random < 0.35 ? BATCHED : SINGLES).publish(job);
  }

  /** Only of kinds that end in their lane. */
  #publishKeyed(runtime: Runtime): Promise<unknown> {
    const key = `k${Math.floor(this.#random() * KEYS)}`;
    const place = (this.#places.get(key) ?? 0) + 1;
    this.#places.set(key, place);
    const job = { ...this.#job(this.#random() < 0.01 ? 'flaky' : 'follow'), key, place };
    this.#ledger.add(job);
    return runtime.publisher(KEYED).publish(job, { key });
  }

  #kind(): JobKind {
    const random = this.#random();
    if (this.mostFail && random < 0.5) return 'flaky';
    if (random < 0.62) return 'plain';
    if (random < 0.92) return 'follow';
    if (random < 0.94) return 'flaky';
    if (random < 0.96) return 'deferred';
    return random < 0.99 ? 'poisoned' : 'thrown';
  }

  #job(kind: JobKind): Job {
    this.#lastId += 1;
    const takesMs = this.#random() < 0.02 ? 1 + Math.floor(this.#random() * 5) : 0;
    return { id: this.#lastId, kind, takesMs, dueMs: Date.now() + DEFER_MS };
  }
}

function atTime(untilMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, untilMs - performance.now())));
}
