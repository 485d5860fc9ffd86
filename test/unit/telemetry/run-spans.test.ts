// The span of a run: where it belongs, what it says, when it ends.
import { SpanKind, SpanStatusCode, context, propagation, trace } from '@opentelemetry/api';
import { AlwaysOffSampler, SamplingDecision } from '@opentelemetry/sdk-trace';
import type { Sampler } from '@opentelemetry/sdk-trace';
import { afterEach, describe, expect, it } from 'vitest';
import { PulseworkError, TransportError } from '../../../src/core/errors.js';
import { copyProperties } from '../../../src/core/properties.js';
import type { OpenTelemetryOptions } from '../../../src/otel.js';
import { openTelemetry } from '../../../src/otel.js';
import type { SettlementReport, Telemetry } from '../../../src/ports/telemetry.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { CREATION, RuntimeStub, TOPIC, TRACE, TRACEPARENT, runStart, settled, startRun } from './telemetry-kit.js';

const NAME = `process ${TOPIC}`;

function started(options: OpenTelemetryOptions = {}, sampler?: Sampler): { sdk: OtelSdk; telemetry: Telemetry } {
  const sdk = new OtelSdk(sampler);
  sdk.register();
  const telemetry = openTelemetry(options);
  telemetry.onStart?.(new RuntimeStub());
  return { sdk, telemetry };
}

afterEach(() => {
  OtelSdk.unregister();
});

describe('the span of a run', () => {
  it('is a child of the span that published the message, and linked to it', () => {
    const { sdk, telemetry } = started();
    startRun(telemetry).settled(settled());

    const span = sdk.span(NAME);
    expect(span.kind).toBe(SpanKind.CONSUMER);
    expect(span.spanContext().traceId).toBe(TRACE);
    expect(span.parentSpanContext?.spanId).toBe(CREATION);
    expect(span.links.map(({ context: { spanId } }) => spanId)).toEqual([CREATION]);
  });

  it('begins a trace of its own with "traceMode: link", and keeps the baggage', () => {
    const { sdk, telemetry } = started({ traceMode: 'link' });
    const run = startRun(telemetry, { properties: { traceparent: TRACEPARENT, baggage: 'tenant=acme' } });
    const tenant = run.within(() => propagation.getActiveBaggage()?.getEntry('tenant')?.value);
    run.settled(settled());

    const span = sdk.span(NAME);
    expect([span.parentSpanContext, span.spanContext().traceId === TRACE, tenant]).toEqual([undefined, false, 'acme']);
    expect(span.links.map(({ context: { spanId } }) => spanId)).toEqual([CREATION]);
  });

  it('is named by the pattern of its handler, and says which topic it was', () => {
    const { sdk, telemetry } = started();
    startRun(telemetry, { topicTemplate: 'public/default/orders-.+' }).settled(settled());

    expect(sdk.span('process public/default/orders-.+').attributes).toMatchObject({
      'messaging.destination.name': TOPIC,
      'messaging.destination.template': 'public/default/orders-.+',
    });
  });

  it('never belongs to what is active where the runtime calls', () => {
    const { sdk, telemetry } = started();
    trace.getTracer('app').startActiveSpan('boot', (boot) => {
      startRun(telemetry).settled(settled());
      startRun(telemetry, { topic: 'persistent://a/b/c', properties: {} }).settled(settled());
      boot.end();
    });

    expect(sdk.span(NAME).parentSpanContext?.spanId).toBe(CREATION);
    expect(sdk.span('process persistent://a/b/c').parentSpanContext).toBeUndefined();
  });

  it('is active while the handler runs, also after an await', async () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    const seen = await run.within(async () => {
      await Promise.resolve();
      return trace.getActiveSpan()?.spanContext().spanId;
    });
    run.settled(settled());

    expect(seen).toBe(sdk.span(NAME).spanContext().spanId);
    expect(run.logFields).toEqual({ trace_id: TRACE, span_id: seen });
  });

  it('has the calls to the coordinator of its transaction below it, each with its end', () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    run.startTransaction?.('begin')?.done();
    run.startTransaction?.('commit')?.failed(new TransportError('CONNECTION_LOST', 'gone', { retriable: true }));
    run.startTransaction?.('commit')?.done();
    run.settled(settled());

    const parent = sdk.span(NAME).spanContext().spanId;
    const calls = sdk.spans.filter(({ name }) => name.endsWith(' transaction'));
    expect(calls.map(({ name, parentSpanContext }) => [name, parentSpanContext?.spanId])).toEqual([
      ['begin transaction', parent],
      ['commit transaction', parent],
      ['commit transaction', parent],
    ]);
    expect(calls.map(({ attributes }) => attributes['error.type'])).toEqual([undefined, 'CONNECTION_LOST', undefined]);
    expect(calls[0]?.attributes).toMatchObject({
      'messaging.operation.name': 'begin',
      'messaging.operation.type': 'settle',
      'messaging.destination.name': TOPIC,
    });
  });

  it('has the attributes of the conventions and our own', () => {
    const { sdk, telemetry } = started({ serverAddress: 'pulsar.acme.dev', serverPort: 6650, payloadSize: true });
    const id = { ledgerId: 7, entryId: 8, partition: 3, batchIndex: 2, batchSize: 5, topic: `${TOPIC}-partition-3` };
    const properties = copyProperties({ 'pulsework-correlation-id': 'c-1' });
    const delay = { delayMs: 4_000, strategy: 'hold', outcome: 'retry', settlement: 'redeliver' } as const;
    startRun(telemetry, { id, properties, attempt: 2, redeliveryCount: 1 }).settled(settled(delay));

    expect(sdk.span(NAME).attributes).toEqual({
      'messaging.system': 'pulsar',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': TOPIC,
      'messaging.destination.partition.id': '3',
      'messaging.destination.subscription.name': 'billing',
      'messaging.message.id': '7:8:3:2',
      'messaging.message.conversation_id': 'c-1',
      'messaging.message.body.size': 12,
      'messaging.pulsar.acknowledgment.type': 'negative_acknowledge',
      'server.address': 'pulsar.acme.dev',
      'server.port': 6650,
      'pulsework.handler': 'Billing.charge',
      'pulsework.attempt': 2,
      'pulsework.redelivery_count': 1,
      'pulsework.outcome': 'retry',
      'pulsework.settlement': 'redeliver',
      'pulsework.redelivery.strategy': 'hold',
      'pulsework.delay_ms': 4_000,
    });
  });

  it('of a letter names the topic the message came from first, and no partition of another one', () => {
    const { sdk, telemetry } = started();
    const id = { ...runStart().id, partition: 2, topic: `${TOPIC}-billing-RETRY-partition-2` };
    startRun(telemetry, { id }).settled(settled());

    expect(sdk.span(NAME).attributes).not.toHaveProperty('messaging.destination.partition.id');
  });

  it.each([
    ['1.44', ['messaging.system']],
    ['1.45', ['messaging.system.name']],
    ['dup', ['messaging.system', 'messaging.system.name']],
  ] as const)('with "semconv: %s" names the system by %j', (semconv, expected) => {
    const { sdk, telemetry } = started({ semconv });
    startRun(telemetry).settled(settled());

    const { attributes } = sdk.span(NAME);
    expect(Object.keys(attributes).filter((name) => attributes[name] === 'pulsar')).toEqual(expected);
  });

  it('shows samplers where the message is and which attempt it is', () => {
    const seen: unknown[] = [];
    const sampler: Sampler = {
      shouldSample: (_context, _trace, name, kind, attributes) => {
        seen.push({ name, kind, ...attributes });
        return { decision: SamplingDecision.NOT_RECORD };
      },
      toString: () => 'test',
    };
    const { telemetry } = started({}, sampler);
    seen.length = 0; // the probe
    for (const attempt of [1, 3, 1]) startRun(telemetry, { attempt });

    const fixed = {
      name: NAME,
      kind: SpanKind.CONSUMER,
      'messaging.system': 'pulsar',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': TOPIC,
      'messaging.destination.subscription.name': 'billing',
      'pulsework.handler': 'Billing.charge',
    };
    expect(seen).toEqual([1, 3, 1].map((attempt) => ({ ...fixed, 'pulsework.attempt': attempt })));
  });

  it('that is not sampled still carries its context on, and records nothing', () => {
    const { sdk, telemetry } = started({}, new AlwaysOffSampler());
    const run = startRun(telemetry);
    const active = run.within(() => trace.getActiveSpan()?.spanContext());
    run.settled(settled());

    expect(active).toMatchObject({ traceId: TRACE, traceFlags: 0 });
    expect(run.logFields).toMatchObject({ trace_id: TRACE });
    expect([sdk.started, sdk.spans]).toEqual([0, []]);
  });

  it('links to where the message was first published too, when it comes as a letter', () => {
    const { sdk, telemetry } = started();
    const origin = '00-33333333333333333333333333333333-4444444444444444-01';
    startRun(telemetry, {
      properties: { traceparent: TRACEPARENT, 'pulsework-origin-traceparent': origin },
    }).settled(settled());

    const links = sdk.span(NAME).links.map(({ context: { spanId } }) => spanId);
    expect(links).toEqual([CREATION, '4444444444444444']);
  });
});

describe('the status of a run', () => {
  class CardDeclined extends Error {}
  const withError = { reason: 'declined', error: new CardDeclined('declined') };

  const cases: readonly (readonly [string, Partial<SettlementReport>, string | undefined])[] = [
    ['success', {}, undefined],
    ['skip', { outcome: 'skip', failure: { reason: 'old' } }, undefined],
    ['retry with a reason', { outcome: 'retry', settlement: 'redeliver', failure: { reason: 'x' } }, undefined],
    ['retry with an error', { outcome: 'retry', settlement: 'redeliver', failure: withError }, 'CardDeclined'],
    [
      'retry, the last one',
      { outcome: 'retry', settlement: 'dead-letter', cause: 'redeliveries-exhausted', failure: { reason: 'x' } },
      'redeliveries-exhausted',
    ],
    ['defer', { outcome: 'defer', settlement: 'redeliver', failure: withError }, undefined],
    [
      'poison in words',
      { outcome: 'poison', settlement: 'dead-letter', cause: 'poison', failure: { reason: 'x' } },
      'poison',
    ],
    [
      'an error of ours',
      {
        outcome: 'poison',
        settlement: 'dead-letter',
        cause: 'undecodable',
        failure: { reason: 'x', error: new PulseworkError('PAYLOAD_UNDECODABLE', 'x') },
      },
      'PAYLOAD_UNDECODABLE',
    ],
    ['fatal', { outcome: 'fatal', settlement: 'leave', failure: { reason: 'x' } }, 'fatal'],
  ];

  it.each(cases)('of %s', (_name, report, errorType) => {
    const { sdk, telemetry } = started();
    startRun(telemetry).settled(settled(report));

    const { status, attributes } = sdk.span(NAME);
    expect(status.code).toBe(errorType === undefined ? SpanStatusCode.UNSET : SpanStatusCode.ERROR);
    expect(attributes['error.type']).toBe(errorType);
  });

  it('comes with the exception, redacted', () => {
    const { sdk, telemetry } = started({ redact: [/\d{16}/] });
    const error = new CardDeclined('card 4111111111111111 declined');
    const failure = { reason: error.message, error };
    startRun(telemetry).settled(settled({ outcome: 'retry', settlement: 'redeliver', failure }));

    const { status, events } = sdk.span(NAME);
    expect(status.message).toBe('card [redacted] declined');
    expect(events.map(({ name, attributes }) => [name, attributes?.['exception.type']])).toEqual([
      ['exception', 'CardDeclined'],
    ]);
    expect(JSON.stringify(events)).not.toContain('4111111111111111');
  });

  it('survives an error whose getters throw', () => {
    const { sdk, telemetry } = started();
    const error = new Error('x');
    for (const name of ['stack', 'name', 'message', 'code']) {
      const get = (): never => {
        throw new Error('hostile');
      };
      Object.defineProperty(error, name, { get });
    }
    startRun(telemetry).settled(
      settled({ outcome: 'retry', settlement: 'redeliver', failure: { reason: 'r', error } }),
    );

    expect(sdk.span(NAME).status).toEqual({ code: SpanStatusCode.ERROR, message: 'r' });
  });
});

describe('a run ends its span', () => {
  it('at the first call of the settlement that fails; what comes later adds nothing', () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    run.settlementFailed('acknowledging', new Error('connection lost'), settled());
    run.settlementFailed('acknowledging', new Error('again'), settled());
    run.settled(settled());

    const [event, ...others] = sdk.span(NAME).events;
    expect(event?.attributes).toEqual({
      'pulsework.settlement.call': 'acknowledging',
      'error.type': 'Error',
      'exception.message': 'connection lost',
    });
    expect([event?.name, others]).toEqual(['pulsework.settlement_failed', []]);
    expect(sdk.span(NAME).attributes).toMatchObject({ 'pulsework.outcome': 'success' });
  });

  it('without an outcome when it is dropped', () => {
    const { sdk, telemetry } = started();
    startRun(telemetry).dropped();

    const { attributes } = sdk.span(NAME);
    expect([attributes['pulsework.dropped'], attributes['pulsework.outcome']]).toEqual([true, undefined]);
  });

  it('when the runtime closes, at the latest, and says that it was not finished', () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    telemetry.onClose?.();
    run.settled(settled());

    expect(sdk.span(NAME).attributes['pulsework.unfinished']).toBe(true);
    expect(sdk.started).toBe(1);
  });
});

describe('hostile properties', () => {
  it.each([
    ['a traceparent that is none', { traceparent: 'x'.repeat(10_000) }],
    ['names of the language', copyProperties(JSON.parse('{"__proto__":"a","constructor":"b","length":"c"}') as never)],
    ['an inherited traceparent', Object.create({ traceparent: TRACEPARENT }) as Record<string, string>],
    ['an all-zero context', { traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }],
    ['a tracestate and a baggage of garbage', { tracestate: '=,=,', baggage: ';;=\u0000%' }],
    ['an origin that is none', { 'pulsework-origin-traceparent': '00-zz' }],
  ])('(%s) give a span without parent and links', (_name, properties) => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry, { properties });
    run.within(() => context.active());
    run.settled(settled());

    const span = sdk.span(NAME);
    expect([span.parentSpanContext, span.links]).toEqual([undefined, []]);
  });

  it('do not leave their handler without its name', () => {
    const { sdk, telemetry } = started();
    startRun(telemetry, { handler: '__proto__', topic: '__proto__' }).settled(settled());

    expect(sdk.span('process __proto__').attributes['pulsework.handler']).toBe('__proto__');
  });
});

describe('a batch', () => {
  const deliveries = [0, 1, 2].map((batchIndex) =>
    runStart({
      id: { ...runStart().id, batchIndex },
      attempt: batchIndex + 1,
      properties: batchIndex === 1 ? {} : { traceparent: `00-${TRACE}-${String(batchIndex + 5).repeat(16)}-01` },
    }),
  );
  const batch = { handler: 'Billing.charge', subscription: 'billing', deliveries };

  it('runs in one span that links to each creation; each delivery has its own, linked to the batch', () => {
    const { sdk, telemetry } = started();
    const observer = telemetry.startBatch?.(batch);
    const active = observer?.within(() => trace.getActiveSpan()?.spanContext().spanId);
    observer?.ended(undefined);
    for (const run of observer?.runs ?? []) run?.settled(settled());

    const [whole, ...each] = sdk.spans;
    expect(whole?.spanContext().spanId).toBe(active);
    expect(whole?.attributes).toMatchObject({ 'messaging.batch.message_count': 3 });
    expect(whole?.attributes).not.toHaveProperty('messaging.message.id');
    expect(whole?.links.map(({ context: { spanId } }) => spanId)).toEqual(['5'.repeat(16), '7'.repeat(16)]);
    expect(whole?.parentSpanContext).toBeUndefined();
    expect(each.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([
      '5'.repeat(16),
      undefined,
      '7'.repeat(16),
    ]);
    for (const span of each) expect(span.links.at(-1)?.context.spanId).toBe(active);
    expect(each.map(({ attributes }) => attributes['pulsework.attempt'])).toEqual([1, 2, 3]);
  });

  it('whose handler throws says so', () => {
    const { sdk, telemetry } = started();
    telemetry.startBatch?.(batch)?.ended(new RangeError('x'));

    expect(sdk.spans[0]?.attributes['error.type']).toBe('RangeError');
    expect(sdk.spans[0]?.status.code).toBe(SpanStatusCode.ERROR);
  });

  it('of several topics names none', () => {
    const { sdk, telemetry } = started();
    const mixed = [runStart(), runStart({ topic: 'persistent://a/b/c' })];
    telemetry.startBatch?.({ ...batch, deliveries: mixed })?.ended(undefined);

    expect(sdk.span('process').attributes).not.toHaveProperty('messaging.destination.name');
  });

  it('of more messages than a span may have links keeps the last 128, as the SDK does; each delivery keeps its own', () => {
    const { sdk, telemetry } = started();
    const many = Array.from({ length: 200 }, (_, i) =>
      runStart({ properties: { traceparent: `00-${TRACE}-${String(i + 1).padStart(16, '0')}-01` } }),
    );
    const observer = telemetry.startBatch?.({ ...batch, deliveries: many });
    observer?.ended(undefined);
    for (const run of observer?.runs ?? []) run?.settled(settled());

    const [whole, ...each] = sdk.spans;
    expect([whole?.links.length, whole?.droppedLinksCount]).toEqual([128, 72]);
    expect(each.map(({ links }) => links[0]?.context.spanId)).toEqual(
      many.map((_, i) => String(i + 1).padStart(16, '0')),
    );
  });
});
