// The span of a publish, and the context it puts on the message.
import { SpanKind, SpanStatusCode, context, trace } from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace';
import type { Sampler } from '@opentelemetry/sdk-trace';
import { afterEach, describe, expect, it } from 'vitest';
import { copyProperties } from '../../../src/core/properties.js';
import { TransportError } from '../../../src/core/errors.js';
import type { OpenTelemetryOptions } from '../../../src/otel.js';
import { openTelemetry } from '../../../src/otel.js';
import type { PublishKind, PublishObserver, RunObserver, Telemetry } from '../../../src/ports/telemetry.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { CREATION, RuntimeStub, TOPIC, TRACE, TRACEPARENT, runStart, settled, startRun } from './telemetry-kit.js';

const TO = 'persistent://public/default/receipts';
const ID = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: TO };

function started(options: OpenTelemetryOptions = {}, sampler?: Sampler): { sdk: OtelSdk; telemetry: Telemetry } {
  const sdk = new OtelSdk(sampler);
  sdk.register();
  const telemetry = openTelemetry(options);
  telemetry.onStart?.(new RuntimeStub());
  return { sdk, telemetry };
}

interface Given {
  readonly kind?: PublishKind;
  readonly run?: RunObserver | undefined;
  readonly properties?: Readonly<Record<string, string>>;
  readonly isRelayed?: boolean;
}

function startPublish(telemetry: Telemetry, given: Given = {}): PublishObserver {
  const { kind = 'message', run, properties = {}, isRelayed } = given;
  const message = { payload: new Uint8Array(3), properties: copyProperties(properties) };
  const publish = telemetry.startPublish?.({ kind, topic: TO, message, run, isRelayed });
  if (publish === undefined) throw new Error('the publish is not observed');
  return publish;
}

afterEach(() => {
  OtelSdk.unregister();
});

describe('the span of a publish', () => {
  it('of a run is its child, and the message carries it', () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    const publish = startPublish(telemetry, { run, properties: { tenant: 'acme' } });
    publish.done(ID);
    run.settled(settled());

    const [send, process] = sdk.spans;
    expect([send?.name, send?.kind, send?.status.code]).toEqual([
      `send ${TO}`,
      SpanKind.PRODUCER,
      SpanStatusCode.UNSET,
    ]);
    expect(send?.parentSpanContext?.spanId).toBe(process?.spanContext().spanId);
    expect({ ...publish.properties }).toEqual({
      tenant: 'acme',
      traceparent: `00-${TRACE}-${send?.spanContext().spanId ?? ''}-01`,
    });
    expect(send?.attributes).toEqual({
      'messaging.system': 'pulsar',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': TO,
      'messaging.message.id': '1:2:-1',
      'pulsework.publish.kind': 'message',
    });
  });

  it('outside a run belongs to what is active', () => {
    const { sdk, telemetry } = started();
    trace.getTracer('app').startActiveSpan('request', (request) => {
      startPublish(telemetry).done(ID);
      request.end();
    });

    expect(sdk.span(`send ${TO}`).parentSpanContext?.spanId).toBe(sdk.span('request').spanContext().spanId);
  });

  it('of another observer than ours belongs to what is active', () => {
    const { sdk, telemetry } = started();
    const run: RunObserver = {
      within: (call) => call(),
      settled: () => undefined,
      settlementFailed: () => undefined,
      dropped: () => undefined,
    };
    startPublish(telemetry, { run }).done(ID);

    expect(sdk.span(`send ${TO}`).parentSpanContext).toBeUndefined();
  });

  it('of what is relayed belongs to what the message carries, whatever is active', () => {
    const { sdk, telemetry } = started();
    trace.getTracer('app').startActiveSpan('somebody else', (other) => {
      startPublish(telemetry, { isRelayed: true, properties: { traceparent: TRACEPARENT } }).done(ID);
      startPublish(telemetry, { isRelayed: true }).done(ID);
      other.end();
    });

    const [carried, alone] = sdk.spans;
    expect([carried?.parentSpanContext?.spanId, carried?.links]).toEqual([CREATION, []]);
    expect(alone?.parentSpanContext).toBeUndefined();
  });

  it('that fails is an error; the next try has its own span', () => {
    const { sdk, telemetry } = started();
    startPublish(telemetry).failed(new TransportError('CONNECTION_LOST', 'gone', { retriable: true }));
    startPublish(telemetry).done({ ...ID, partition: 4 });

    const [failed, done] = sdk.spans;
    expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'gone' });
    expect(failed?.attributes['error.type']).toBe('CONNECTION_LOST');
    expect(done?.attributes['messaging.destination.partition.id']).toBe('4');
  });

  it('that is not sampled still puts the context on', () => {
    const { telemetry } = started({}, new AlwaysOffSampler());
    const run = startRun(telemetry);

    expect(startPublish(telemetry, { run }).properties['traceparent']).toMatch(new RegExp(`^00-${TRACE}-\\w{16}-00$`));
  });

  it('is not made where tracing is suppressed: the message goes as it is', () => {
    const { sdk, telemetry } = started();
    const properties = { traceparent: TRACEPARENT };
    const publish = context.with(suppressTracing(context.active()), () => startPublish(telemetry, { properties }));
    publish.done(ID);

    expect([{ ...publish.properties }, sdk.started]).toEqual([properties, 0]);
  });
});

describe('a context that the message carries already', () => {
  it('is replaced whole, whatever the case of its names, and linked', () => {
    const { sdk, telemetry } = started();
    const properties = {
      traceparent: TRACEPARENT,
      Traceparent: 'old',
      tracestate: 'a=b',
      BAGGAGE: 'x=y',
      tenant: 'acme',
    };
    const publish = startPublish(telemetry, { properties });
    publish.done(ID);

    const span = sdk.span(`send ${TO}`);
    expect({ ...publish.properties }).toEqual({
      tenant: 'acme',
      traceparent: `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`,
    });
    expect(span.links.map(({ context: { spanId } }) => spanId)).toEqual([CREATION]);
  });

  it.each(['dead-letter', 'retry-letter'] as const)('is kept as the origin on a %s', (kind) => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    const publish = startPublish(telemetry, { kind, run, properties: { traceparent: TRACEPARENT } });
    publish.done(ID);

    const span = sdk.span(`send ${TO}`);
    expect(publish.properties['pulsework-origin-traceparent']).toBe(TRACEPARENT);
    expect(publish.properties['traceparent']).toContain(span.spanContext().spanId);
    expect(span.links.map(({ context: { spanId } }) => spanId)).toEqual([CREATION]);
  });

  it('is not the origin when a letter had one before', () => {
    const { sdk, telemetry } = started();
    const origin = '00-33333333333333333333333333333333-4444444444444444-01';
    const properties = { traceparent: TRACEPARENT, 'pulsework-origin-traceparent': origin };
    const publish = startPublish(telemetry, { kind: 'dead-letter', properties });
    publish.done(ID);

    expect(publish.properties['pulsework-origin-traceparent']).toBe(origin);
    expect(sdk.span(`send ${TO}`).links.map(({ context: { spanId } }) => spanId)).toEqual(['4444444444444444']);
  });

  it('is where a letter without a run belongs, not what happens to be active', () => {
    const { sdk, telemetry } = started();
    trace.getTracer('app').startActiveSpan('boot', (boot) => {
      startPublish(telemetry, { kind: 'dead-letter', properties: { traceparent: TRACEPARENT } }).done(ID);
      boot.end();
    });

    expect(sdk.span(`send ${TO}`).parentSpanContext?.spanId).toBe(CREATION);
  });
});

describe('the context of a letter', () => {
  const baggage = `x=${'y'.repeat(1_000)}`;
  const carried = { traceparent: TRACEPARENT, baggage };

  it('is whole where the message that is copied had as much', () => {
    const { telemetry } = started();
    const run = startRun(telemetry, { properties: copyProperties(carried) });
    const letter = startPublish(telemetry, { kind: 'dead-letter', run, properties: carried });
    expect(letter.properties['baggage']).toBe(baggage);
  });

  it('leaves out what the letter, cut to fit, has no room for; a message of a user does not', () => {
    const { telemetry } = started();
    const run = startRun(telemetry, { properties: copyProperties(carried) });
    const letter = startPublish(telemetry, { kind: 'dead-letter', run });
    expect(Object.keys(letter.properties)).toEqual(['traceparent']);
    expect(startPublish(telemetry, { run }).properties['baggage']).toBe(baggage);
  });
});

describe('properties of a message', () => {
  it('with hostile names travel as they are', () => {
    const { telemetry } = started();
    const properties = copyProperties(JSON.parse('{"__proto__":"a","constructor":"b","toString":"c"}') as never);
    const publish = startPublish(telemetry, { properties });

    expect(Object.keys(publish.properties)).toEqual(['__proto__', 'constructor', 'toString', 'traceparent']);
    expect(Object.getPrototypeOf(publish.properties)).toBeNull();
  });

  it('are copied: the message of the caller stays', () => {
    const { telemetry } = started();
    const properties = copyProperties({ traceparent: TRACEPARENT });
    const message = { payload: null, properties };
    telemetry.startPublish?.({ kind: 'message', topic: TO, message, run: undefined });

    expect({ ...properties }).toEqual({ traceparent: TRACEPARENT });
  });
});

describe('acknowledgements', () => {
  const name = `ack ${TOPIC}`;

  it.each([
    ['off', 0, 0],
    ['errors', 0, 1],
    ['all', 1, 1],
  ] as const)('with "settleSpans: %s": %i spans when done, %i when failed', (settleSpans, whenDone, whenFailed) => {
    const { sdk, telemetry } = started({ settleSpans });
    startRun(telemetry).startAcknowledge?.()?.done();
    expect(sdk.names.filter((each) => each === name)).toHaveLength(whenDone);
    sdk.spans.length = 0;

    startRun(telemetry).startAcknowledge?.()?.failed(new Error('lost'));
    const failed = sdk.spans.filter((span) => span.name === name);
    expect(failed.map(({ kind, status: { code } }) => [kind, code])).toEqual(
      Array.from({ length: whenFailed }, () => [SpanKind.CLIENT, SpanStatusCode.ERROR]),
    );
  });

  it('are children of the run', () => {
    const { sdk, telemetry } = started({ settleSpans: 'all' });
    const run = startRun(telemetry, { id: runStart().id });
    run.startAcknowledge?.()?.done();
    run.settled(settled());

    expect(sdk.span(name).parentSpanContext?.spanId).toBe(sdk.span(`process ${TOPIC}`).spanContext().spanId);
    expect(sdk.span(name).attributes).toMatchObject({ 'messaging.operation.type': 'settle' });
  });
});
