// The spans of the calls to the coordinator of a transaction: below the run whose outcome they settle.
import { afterEach, describe, expect, it } from 'vitest';
import { TransportError } from '../../../src/core/errors.js';
import { openTelemetry } from '../../../src/otel.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { RuntimeStub, TOPIC, settled, startRun } from './telemetry-kit.js';

afterEach(() => {
  OtelSdk.unregister();
});

describe('the span of a run', () => {
  it('has the calls to the coordinator of its transaction below it, each with its end', () => {
    const sdk = new OtelSdk();
    sdk.register();
    const telemetry = openTelemetry();
    telemetry.onStart?.(new RuntimeStub());
    const run = startRun(telemetry);
    run.startTransaction?.('begin')?.done();
    run.startTransaction?.('commit')?.failed(new TransportError('CONNECTION_LOST', 'gone', { retriable: true }));
    run.startTransaction?.('commit')?.done();
    run.settled(settled());

    const parent = sdk.span(`process ${TOPIC}`).spanContext().spanId;
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
});
