// Whatever the runtime tells, in whatever order: each span that started ends, and ends once.
import { DiagLogLevel, diag } from '@opentelemetry/api';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { openTelemetry } from '../../../src/otel.js';
import type { CallObserver, PublishObserver, RunObserver, Telemetry } from '../../../src/ports/telemetry.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { RuntimeStub, TOPIC, runStart, settled } from './telemetry-kit.js';

const SEED = 20_261_130;
/** Plays steps; each ends something that an earlier one began, where there is something. */
class Play {
  readonly #telemetry: Telemetry;
  readonly #runs: RunObserver[] = [];
  readonly #calls: (CallObserver | PublishObserver)[] = [];

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  readonly steps: Readonly<Record<string, (at: number) => void>> = {
    run: (at) => this.#opened(this.#telemetry.startRun?.(runStart({ attempt: 1 + (at % 3) }))),
    batch: (at) => this.#batch(at),
    publish: (at) => this.#publish(this.#runAt(at)),
    acknowledge: (at) => this.#called(this.#runAt(at)?.startAcknowledge?.()),
    settled: (at) => this.#runAt(at)?.settled(settled()),
    settlementFailed: (at) => this.#runAt(at)?.settlementFailed('acknowledging', new Error('x'), settled()),
    dropped: (at) => this.#runAt(at)?.dropped(),
    done: (at) => this.#callAt(at)?.done(runStart().id),
    failed: (at) => this.#callAt(at)?.failed(new Error('x')),
    close: () => this.#telemetry.onClose?.(),
  };

  #runAt(at: number): RunObserver | undefined {
    return this.#runs[at % Math.max(1, this.#runs.length)];
  }

  #callAt(at: number): CallObserver | PublishObserver | undefined {
    return this.#calls[at % Math.max(1, this.#calls.length)];
  }

  #batch(at: number): void {
    const deliveries = [runStart(), runStart({ properties: {} })];
    const batch = this.#telemetry.startBatch?.({ handler: 'h', subscription: 's', deliveries });
    for (const run of batch?.runs ?? []) this.#opened(run);
    batch?.within(() => undefined);
    if (at % 2 === 0) batch?.ended(at % 4 === 0 ? undefined : new Error('x'));
  }

  #publish(run: RunObserver | undefined): void {
    const message = { payload: null, properties: {} };
    this.#called(this.#telemetry.startPublish?.({ kind: 'retry-letter', topic: TOPIC, message, run }));
  }

  #opened(run: RunObserver | undefined): void {
    if (run !== undefined) this.#runs.push(run);
  }

  #called(call: CallObserver | PublishObserver | undefined): void {
    if (call !== undefined) this.#calls.push(call);
  }
}

afterEach(() => {
  OtelSdk.unregister();
  diag.disable();
});

it('each span that started has ended once when everything is closed', () => {
  const complaints: string[] = [];
  const complain = (message: string): void => void complaints.push(message);
  const silent = (): void => undefined;
  const logger = { error: complain, warn: complain, info: silent, debug: silent, verbose: silent };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN });
  const steps = Object.keys(new Play({}).steps);
  const program = fc.array(fc.tuple(fc.constantFrom(...steps), fc.nat({ max: 20 })), { maxLength: 40 });
  fc.assert(
    fc.property(program, (played) => {
      const { tracerProvider, propagator, ...sdk } = new OtelSdk();
      const telemetry = openTelemetry({ tracerProvider, propagator, settleSpans: 'all' });
      telemetry.onStart?.(new RuntimeStub());
      const play = new Play(telemetry);
      for (const [step, at] of played) play.steps[step]?.(at);
      telemetry.onClose?.();
      const ids = sdk.spans.map((span) => span.spanContext().spanId);

      expect(ids.toSorted()).toEqual(sdk.startOrder.toSorted());
    }),
    { seed: SEED, numRuns: 200 },
  );
  expect(complaints).toEqual([]);
});
