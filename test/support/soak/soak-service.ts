// One service of a soak: a runtime on the shared broker with a clock of its own, so that the timers it leaves are counted
// when it has closed, and known by weak references afterwards, so that what keeps it in memory is noticed.
import type { Delivery, Transport } from '../../../src/index.js';
import { Runtime, consoleLogger } from '../../../src/index.js';
import type { EmbeddedBroker } from '../../../src/embedded.js';
import { embedded } from '../../../src/embedded.js';
import { openTelemetry } from '../../../src/otel.js';
import { CountingClock } from '../../bench/counting-clock.js';
import type { JobLedger } from './job-ledger.js';
import { soakHandlers } from './soak-handlers.js';

/** Copies are recognised for a short time, so that what is kept for it does not count as growth. */
export const DUPLICATE_WINDOW_MS = 250;

export interface SoakPlace {
  readonly broker: EmbeddedBroker;
  readonly ledger: JobLedger;
  readonly seen: (delivery: Delivery) => void;
  readonly logged: () => void;
}

export class SoakService {
  readonly runtime: Runtime;
  readonly clock: CountingClock;

  private constructor(runtime: Runtime, clock: CountingClock) {
    this.runtime = runtime;
    this.clock = clock;
  }

  static async start({ broker, ledger, seen, logged }: SoakPlace): Promise<SoakService> {
    const clock = new CountingClock();
    const runtime = await Runtime.start({
      transport: withClock(embedded({ broker }), clock),
      handlers: soakHandlers(ledger, seen),
      telemetry: openTelemetry({ settleSpans: 'errors', acknowledgeDuration: true }),
      logger: consoleLogger({ level: 'debug', write: logged }),
      duplicateWindowMs: DUPLICATE_WINDOW_MS,
    });
    return new SoakService(runtime, clock);
  }

  /** @param how by a drain, or at once. Gives what does not hold. */
  async stop(how: 'drain' | 'close'): Promise<readonly string[]> {
    const { complete, stillRunning } = await this.runtime[how]();
    const timers = this.clock.pendingTimers;
    return [
      ...(how === 'drain' && !complete ? ['a drain met its deadline'] : []),
      ...(stillRunning.length > 0 ? [`handlers went on after a ${how}: ${stillRunning.join(', ')}`] : []),
      ...(timers > 0 ? [`${timers} timers are left after a ${how}`] : []),
    ];
  }
}

/** The broker's own timers are not this runtime's. */
function withClock(inner: Transport, clock: CountingClock): Transport {
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    clock,
    maxMessageBytes: inner.maxMessageBytes,
    subscribe: (spec) => inner.subscribe(spec),
    publisher: (name, options) => inner.publisher(name, options),
    close: () => inner.close(),
  };
}
