// Faults that are built in on purpose: a soak must find each of them, or it would find none that happen.
import { metrics, trace } from '@opentelemetry/api';
import type { Delivery } from '../../../src/index.js';
import { hours } from '../../../src/index.js';
import type { JobLedger } from './job-ledger.js';
import type { SoakService } from './soak-service.js';
import type { Leak } from './soak-settings.js';

/** Small beside what a handler with such a fault would keep. */
const KEPT_BYTES = 2_048;
/** All at the beginning: each check waits for what is open. So many that some are sampled. */
const SPANS = 40;
const SPAN_EACH = 50;

export class SoakLeaks {
  readonly #leaks: ReadonlySet<Leak>;
  readonly #kept: unknown[] = [];
  #delivered = 0;

  constructor(leaks: readonly Leak[]) {
    this.#leaks = new Set(leaks);
  }

  delivered(delivery: Delivery): void {
    if (this.#leaks.size === 0) return;
    this.#delivered += 1;
    if (this.#leaks.has('heap')) this.#kept.push([delivery, Buffer.alloc(KEPT_BYTES)]);
    const forgets = this.#delivered % SPAN_EACH === 0 && this.#delivered <= SPANS * SPAN_EACH;
    if (this.#leaks.has('span') && forgets) trace.getTracer('leak').startSpan('forgotten');
  }

  /** A job that nobody publishes. */
  inLedger(ledger: JobLedger): void {
    if (this.#leaks.has('message')) ledger.add({ id: 0, kind: 'plain', takesMs: 0, dueMs: 0 });
  }

  beforeStop({ runtime, clock }: SoakService): void {
    if (this.#leaks.has('timer')) clock.setTimer(hours(1), () => undefined);
    if (this.#leaks.has('runtime')) this.#kept.push(runtime);
    if (this.#leaks.has('callback'))
      metrics.getMeter('leak').addBatchObservableCallback(() => void runtime.health(), []);
  }
}
