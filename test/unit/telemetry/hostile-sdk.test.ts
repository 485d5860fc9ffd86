// What an SDK throws (a span processor, a propagator) costs what it was asked for, and neither numbers nor other spans.
import type { TextMapPropagator } from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTelemetry } from '../../../src/otel.js';
import type { Telemetry } from '../../../src/ports/telemetry.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { RuntimeStub, TOPIC, runStart, settled, startRun } from './telemetry-kit.js';

let sdk: OtelSdk;
let runtime: RuntimeStub;
beforeEach(() => {
  sdk = new OtelSdk();
  runtime = new RuntimeStub();
});
afterEach(() => OtelSdk.unregister());

const fail = (): never => {
  throw new Error('the backend is down');
};
const message = { payload: null, properties: { mine: '1' } };

function started(parts: { tracerProvider?: TracerProvider; propagator?: TextMapPropagator }): Telemetry {
  const { tracerProvider, propagator, meterProvider } = sdk;
  const telemetry = openTelemetry({ tracerProvider, propagator, meterProvider, settleSpans: 'all', ...parts });
  telemetry.onStart?.(runtime);
  return telemetry;
}

/** One of each, told to its end as the runtime does, which contains what is thrown. */
function playAll(telemetry: Telemetry): void {
  const publish = () => telemetry.startPublish?.({ kind: 'message', topic: TOPIC, message, run: undefined });
  const contained = (tell: () => unknown): void => {
    try {
      tell();
    } catch {
      // Logged by the runtime.
    }
  };
  contained(() => publish()?.done(runStart().id));
  contained(() => publish()?.failed(new Error('lost')));
  const [first, second, third] = [startRun(telemetry), startRun(telemetry), startRun(telemetry)];
  contained(() => first.settled(settled()));
  contained(() => second.settlementFailed('acknowledging', new Error('lost'), settled()));
  contained(() => third.dropped());
}

async function counts(): Promise<Record<string, number>> {
  const points = await sdk.points();
  const total = (name: string): number =>
    (points.get(name) ?? []).reduce((sum, { value }) => sum + (typeof value === 'number' ? value : value.count), 0);
  const sent = total('messaging.client.sent.messages');
  return { sent, runs: total('messaging.process.duration'), dropped: total('pulsework.dropped_runs') };
}

const ALL = { sent: 2, runs: 2, dropped: 1 };

it.each(['onStart', 'onEnd'] as const)('a span processor that throws in %s costs no numbers', async (hook) => {
  const processor = { onStart: () => undefined, onEnd: () => undefined, [hook]: fail };
  const [forceFlush, shutdown] = [async (): Promise<void> => undefined, async (): Promise<void> => undefined];
  // Its probe at start is not sampled: only what follows throws.
  playAll(
    started({ tracerProvider: new TracerProvider({ spanProcessors: [{ ...processor, forceFlush, shutdown }] }) }),
  );
  expect(await counts()).toEqual(ALL);
});

it('a span processor that throws at one span is told of the others as everything closes', async () => {
  let [begun, ended] = [0, 0];
  const onEnd = (): void => {
    ended += 1;
    fail();
  };
  const none = async (): Promise<void> => undefined;
  const processor = { onStart: () => void (begun += 1), onEnd, forceFlush: none, shutdown: none };
  const telemetry = started({ tracerProvider: new TracerProvider({ spanProcessors: [processor] }) });
  for (let i = 0; i < 3; i += 1) startRun(telemetry);
  telemetry.onDrain?.();
  expect(() => telemetry.onClose?.()).toThrow('3 spans could not be ended');
  expect([begun, ended]).toEqual([3, 3]);
  expect((await sdk.points()).has('pulsework.drain.duration')).toBe(true);
  expect(telemetry.startRun?.(runStart())).toBeUndefined();
});

it('a propagator that throws costs the context, and neither spans nor numbers', async () => {
  const telemetry = started({ propagator: { inject: fail, extract: fail, fields: () => [] } });
  playAll(telemetry);
  const sent = telemetry.startPublish?.({ kind: 'dead-letter', topic: TOPIC, message, run: undefined });
  sent?.done(runStart().id);
  expect({ ...sent?.properties }).toEqual({ mine: '1' });
  expect(await counts()).toEqual({ ...ALL, sent: 3 });
  expect(sdk.spans.map((span) => span.spanContext().spanId)).toEqual(expect.arrayContaining(sdk.startOrder));
  const failed = runtime.lines.filter(({ message: line }) => line === 'telemetry failed');
  expect(new Set(failed.map(({ fields }) => fields?.['hook']))).toEqual(new Set(['inject', 'extract']));
});

it('a propagator that throws at one delivery of a batch leaves the others in their traces', () => {
  let asked = 0;
  const extract: TextMapPropagator['extract'] = (...given) => {
    asked += 1;
    return asked === 2 ? fail() : sdk.propagator.extract(...given);
  };
  const { propagator } = sdk;
  const telemetry = started({
    propagator: { inject: (...given) => propagator.inject(...given), extract, fields: () => propagator.fields() },
  });
  const batch = telemetry.startBatch?.({ handler: 'h', subscription: 's', deliveries: [runStart(), runStart()] });
  for (const run of batch?.runs ?? []) run?.settled(settled());
  batch?.ended(undefined);
  expect([sdk.started, sdk.spans.length]).toEqual([3, 3]);
});
