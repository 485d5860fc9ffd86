// Which spans are missing an end.
import type { Attributes } from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import { SpanAccount } from '../../support/soak/span-account.js';

function span(id: string, attributes: Attributes = {}, name = 'process orders') {
  return { name, attributes, spanContext: () => ({ traceId: 'a', spanId: id, traceFlags: 1 }) };
}

describe('SpanAccount', () => {
  it('has nothing to say when every span has ended', () => {
    const account = new SpanAccount();
    account.onStart(span('1'));
    account.onStart(span('2'));
    account.onEnd(span('2'));
    account.onEnd(span('1'));

    expect({ started: account.started, ended: account.ended, open: account.open }).toEqual({
      started: 2,
      ended: 2,
      open: 0,
    });
    expect(account.violations()).toEqual([]);
  });

  it('names those that have not, once', () => {
    const account = new SpanAccount();
    account.onStart(span('1'));
    account.onStart(span('2'));
    account.onStart(span('3', {}, 'send receipts'));
    account.onEnd(span('2'));

    expect(account.open).toBe(2);
    expect(account.violations()).toEqual(['2 spans were started and never ended: process orders, send receipts']);
    expect(account.violations()).toEqual([]);
  });

  it('tells of a span that only the close of its runtime ended', () => {
    const account = new SpanAccount();
    account.onStart(span('1'));
    account.onEnd(span('1', { 'pulsework.unfinished': true }));

    expect(account.violations()).toEqual(['span "process orders" was left to the close of its runtime to be ended']);
  });

  it('tells of an end without a start', () => {
    const account = new SpanAccount();
    account.onEnd(span('1'));

    expect(account.violations()).toEqual(['span "process orders" ended twice']);
  });

  it('tells one kind of fault once, however often it happens', () => {
    const account = new SpanAccount();
    for (let n = 0; n < 100; n++) account.onEnd(span(String(n)));

    expect(account.violations()).toHaveLength(1);
  });

  it('counts the spans of an SDK as its processor', () => {
    const account = new SpanAccount();
    const tracer = new TracerProvider({ spanProcessors: [account] }).getTracer('t');
    tracer.startSpan('ended').end();
    tracer.startSpan('forgotten');

    expect(account.violations()).toEqual(['1 spans were started and never ended: forgotten']);
  });
});
