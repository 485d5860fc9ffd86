// What is found out at start, and what that costs: without an SDK nothing is made for any message.
import type { Tracer, TracerProvider } from '@opentelemetry/api';
import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConfigurationError } from '../../../src/core/errors.js';
import type { OpenTelemetryOptions } from '../../../src/otel.js';
import { openTelemetry } from '../../../src/otel.js';
import type { Telemetry } from '../../../src/ports/telemetry.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { RuntimeStub, TOPIC, runStart, settled, startRun } from './telemetry-kit.js';

const message = { payload: null, properties: {} };
const publish = { kind: 'message', topic: TOPIC, message, run: undefined } as const;
const batch = { handler: 'h', subscription: 's', deliveries: [runStart()] };

/** What the telemetry observes of one of each. */
function observed(telemetry: Telemetry): boolean[] {
  const all = [telemetry.startRun?.(runStart()), telemetry.startBatch?.(batch), telemetry.startPublish?.(publish)];
  return all.map((observer) => observer !== undefined);
}

afterEach(() => {
  OtelSdk.unregister();
});

describe('without an SDK', () => {
  it('nothing is observed, no span is asked for, and one warning says what to do', () => {
    let spans = 0;
    const noop = trace.getTracer('noop');
    const counting = { startSpan: (...given: Parameters<Tracer['startSpan']>) => (spans++, noop.startSpan(...given)) };
    const tracerProvider = { getTracer: () => counting as Tracer } satisfies TracerProvider;
    const runtime = new RuntimeStub();
    const telemetry = openTelemetry({ tracerProvider });
    telemetry.onStart?.(runtime);
    const atStart = spans;

    expect(observed(telemetry)).toEqual([false, false, false]);
    telemetry.onSettled?.(settled());
    telemetry.onDrain?.();
    telemetry.onClose?.();
    expect([atStart, spans]).toEqual([1, 1]);
    expect(runtime.lines.map(({ level }) => level)).toEqual(['warn']);
    expect(runtime.lines[0]?.message).toContain('register an SDK before Runtime.start');
  });

  it('at start, one that is registered later is not used: what was decided at start holds', () => {
    const telemetry = openTelemetry();
    telemetry.onStart?.(new RuntimeStub());
    new OtelSdk().register();

    expect(observed(telemetry)).toEqual([false, false, false]);
  });

  it('nothing is observed after a close either', () => {
    new OtelSdk().register();
    const telemetry = openTelemetry();
    telemetry.onStart?.(new RuntimeStub());
    telemetry.onClose?.();

    expect(observed(telemetry)).toEqual([false, false, false]);
  });
});

describe('with an SDK that is registered first', () => {
  it('everything is observed without a warning, also by a telemetry made before', async () => {
    const telemetry = openTelemetry();
    const sdk = new OtelSdk();
    sdk.register();
    const runtime = new RuntimeStub();
    telemetry.onStart?.(runtime);
    startRun(telemetry).settled(settled());

    expect(observed(telemetry)).toEqual([true, true, true]);
    expect((await sdk.points()).has('messaging.process.duration')).toBe(true);
    expect(sdk.names).toEqual([`process ${TOPIC}`]);
    expect(runtime.lines).toEqual([]);
  });

  it('of traces alone, or of metrics alone, does the one and not the other', async () => {
    const sdk = new OtelSdk();
    sdk.register();
    metrics.disable();
    const tracing = openTelemetry();
    tracing.onStart?.(new RuntimeStub());
    startRun(tracing).settled(settled());
    expect([sdk.names.length, (await sdk.points()).size]).toEqual([1, 0]);

    OtelSdk.unregister();
    metrics.setGlobalMeterProvider(sdk.meterProvider);
    const measuring = openTelemetry();
    measuring.onStart?.(new RuntimeStub());
    const run = startRun(measuring);
    expect(run.within(() => 'result')).toBe('result');
    expect(measuring.startPublish?.(publish)?.properties).toBe(message.properties);
    run.settled(settled());
    expect([sdk.names.length, (await sdk.points()).has('messaging.process.duration')]).toEqual([1, true]);
  });

  it('providers and propagator may be given instead of global ones', () => {
    const { tracerProvider, meterProvider, propagator, spans } = new OtelSdk();
    const telemetry = openTelemetry({ tracerProvider, meterProvider, propagator });
    telemetry.onStart?.(new RuntimeStub());
    startRun(telemetry).settled(settled());

    expect(spans[0]?.links).toHaveLength(1);
  });

  it('a warning says so where traces would end at each message, or handlers would stand apart', () => {
    new OtelSdk().register();
    propagation.disable();
    context.disable();
    const runtime = new RuntimeStub();
    openTelemetry().onStart?.(runtime);

    expect(runtime.lines.map(({ message: line }) => line.replace(/,.*/, ''))).toEqual([
      'no OpenTelemetry propagator is registered',
      'no OpenTelemetry context manager is registered',
    ]);
  });

  it('the probe leaves no span behind', () => {
    const sdk = new OtelSdk();
    sdk.register();
    openTelemetry().onStart?.(new RuntimeStub());

    expect([sdk.started, sdk.spans]).toEqual([0, []]);
  });
});

describe('one telemetry for two runtimes', () => {
  it('is reported, and goes on until both are closed', () => {
    new OtelSdk().register();
    const telemetry = openTelemetry();
    const second = new RuntimeStub();
    telemetry.onStart?.(new RuntimeStub());
    telemetry.onStart?.(second);
    telemetry.onClose?.();

    expect(second.lines.map(({ level }) => level)).toEqual(['error']);
    expect(observed(telemetry)).toEqual([true, true, true]);
    telemetry.onClose?.();
    expect(observed(telemetry)).toEqual([false, false, false]);
  });
});

describe('options', () => {
  it('are checked all together', () => {
    const wrong = {
      traceMode: 'child',
      semconv: '1.43',
      settleSpans: true,
      acknowledgeDuration: 1,
      payloadSize: 'yes',
      maxHandlers: 0,
      serverAddress: '',
      serverPort: -1,
      redact: 'x',
      tracerProvider: {},
      meterProvider: 5,
      propagator: {},
      maxHandler: 5,
    } as unknown as OpenTelemetryOptions;
    let problems: readonly string[] = [];
    try {
      openTelemetry(wrong);
    } catch (error) {
      problems = (error as ConfigurationError).problems;
    }

    expect(problems).toHaveLength(13);
    expect(problems.join('\n')).toContain('unknown option "maxHandler", did you mean "maxHandlers"?');
    expect(problems.join('\n')).toContain('"traceMode" must be one of parent, link, got "child"');
  });

  it.each([
    [{ serverPort: 6650 }, /"serverPort" says nothing without "serverAddress"/],
    [{ serverAddress: 'a', serverPort: 65_536 }, /"serverPort" must be a whole number from 1 to 65535, got 65536/],
    [null, /"options" must be an object/],
  ])('such as %j are refused', (options, reason) => {
    expect(() => openTelemetry(options as OpenTelemetryOptions)).toThrow(reason);
  });

  it('of another name do not compile', () => {
    // @ts-expect-error -- a misspelt option
    expect(() => openTelemetry({ maxHandler: 5 })).toThrow('did you mean "maxHandlers"');
    // @ts-expect-error -- a value that is none of them
    expect(() => openTelemetry({ traceMode: 'child' })).toThrow('"traceMode" must be one of parent, link');
  });

  it('set to undefined are absent', () => {
    expect(() => openTelemetry({ traceMode: undefined, maxHandlers: undefined })).not.toThrow();
  });
});
