// The numbers: what is counted and measured, that they stay bounded, and that they outlive the runtime that made them.
import { afterEach, describe, expect, it } from 'vitest';
import type { Histogram } from '@opentelemetry/sdk-metrics';
import { copyProperties } from '../../../src/core/properties.js';
import type { OpenTelemetryOptions } from '../../../src/otel.js';
import { openTelemetry } from '../../../src/otel.js';
import type { OutboxHealth } from '../../../src/ports/runtime-view.js';
import type { Telemetry } from '../../../src/ports/telemetry.js';
import type { Point } from '../../support/otel-sdk.js';
import { OtelSdk } from '../../support/otel-sdk.js';
import { RuntimeStub, TOPIC, health, settled, startRun } from './telemetry-kit.js';

interface Started {
  readonly sdk: OtelSdk;
  readonly runtime: RuntimeStub;
  readonly telemetry: Telemetry;
}

function started(options: OpenTelemetryOptions = {}, sdk = new OtelSdk()): Started {
  const runtime = new RuntimeStub();
  const telemetry = openTelemetry({ meterProvider: sdk.meterProvider, ...options });
  telemetry.onStart?.(runtime);
  return { sdk, runtime, telemetry };
}

/** Values of a metric by one attribute. */
async function valuesBy(sdk: OtelSdk, metric: string, attribute: string): Promise<Record<string, unknown>> {
  const points = (await sdk.points()).get(metric) ?? [];
  return Object.fromEntries(points.map(({ value, attributes }) => [String(attributes[attribute]), value]));
}

function sums(points: readonly Point[] = []): readonly { count: number; sum: number | undefined; error: unknown }[] {
  return points.map(({ value, attributes }) => {
    const { count, sum } = value as Histogram;
    return { count, sum, error: attributes['error.type'] };
  });
}

afterEach(() => {
  OtelSdk.unregister();
});

describe('of runs', () => {
  it('the duration is measured in seconds, with the error type where it failed', async () => {
    const { sdk, runtime, telemetry } = started();
    for (const [ms, report] of [
      [20, settled()],
      [40, settled()],
      [500, settled({ outcome: 'retry', settlement: 'redeliver', failure: { reason: 'x', error: new RangeError() } })],
    ] as const) {
      const run = startRun(telemetry);
      await runtime.clock.advanceBy(ms);
      run.settled(report);
    }
    const points = (await sdk.points()).get('messaging.process.duration');

    expect(sums(points)).toEqual([
      { count: 2, sum: 0.06, error: undefined },
      { count: 1, sum: 0.5, error: 'RangeError' },
    ]);
    expect(points?.[0]?.attributes).toEqual({
      'messaging.system': 'pulsar',
      'messaging.operation.name': 'process',
      'messaging.destination.name': TOPIC,
      'messaging.destination.subscription.name': 'billing',
      'pulsework.handler': 'Billing.charge',
    });
    expect((points?.[0]?.value as Histogram | undefined)?.buckets.boundaries.slice(0, 3)).toEqual([0.005, 0.01, 0.025]);
  });

  it('the duration ends with the first call of the settlement that fails, and is measured once', async () => {
    const { sdk, runtime, telemetry } = started();
    const run = startRun(telemetry);
    await runtime.clock.advanceBy(10);
    run.settlementFailed('acknowledging', new Error('lost'), settled());
    await runtime.clock.advanceBy(60_000);
    run.settled(settled());

    expect(sums((await sdk.points()).get('messaging.process.duration'))).toEqual([
      { count: 1, sum: 0.01, error: undefined },
    ]);
    expect(await valuesBy(sdk, 'pulsework.settlement.failures', 'pulsework.settlement.call')).toEqual({
      acknowledging: 1,
    });
  });

  it('attempts are counted by their number, deliveries by the conventions’ name', async () => {
    const { sdk, telemetry } = started();
    for (const attempt of [1, 1, 2, 4, 5, 6, 99]) startRun(telemetry, { attempt });

    expect(await valuesBy(sdk, 'pulsework.attempts', 'pulsework.attempt')).toEqual({ 1: 2, 2: 1, 4: 1, '5+': 3 });
    expect(await valuesBy(sdk, 'messaging.client.consumed.messages', 'messaging.operation.name')).toEqual({
      process: 7,
    });
  });

  it('each of a batch counts', async () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    run.dropped();
    const start = { handler: 'h', subscription: 's', topic: TOPIC, key: undefined, properties: copyProperties({}) };
    const id = { ledgerId: 1, entryId: 1, partition: -1, batchIndex: 0, batchSize: 2, topic: TOPIC };
    const delivery = { ...start, id, attempt: 1, redeliveryCount: 0, payloadBytes: 1 };
    const batch = telemetry.startBatch?.({ handler: 'h', subscription: 's', deliveries: [delivery, delivery] });
    for (const each of batch?.runs ?? []) each?.settled(settled());

    expect(await valuesBy(sdk, 'pulsework.attempts', 'pulsework.handler')).toEqual({ 'Billing.charge': 1, h: 2 });
    expect(await valuesBy(sdk, 'pulsework.dropped_runs', 'pulsework.handler')).toEqual({ 'Billing.charge': 1 });
  });
});

describe('of settlements', () => {
  it('outcomes, settlements and dead letters are counted by kind, also without a run', async () => {
    const { sdk, telemetry } = started();
    const retry = { outcome: 'retry', settlement: 'redeliver' } as const;
    telemetry.onSettled?.(settled());
    telemetry.onSettled?.(settled({ ...retry, strategy: 'hold' }));
    telemetry.onSettled?.(settled({ ...retry, strategy: 'local' }));
    for (const cause of ['poison', 'poison', 'process-died'] as const)
      telemetry.onSettled?.(settled({ outcome: 'poison', settlement: 'dead-letter', cause }));
    telemetry.onSettled?.(settled({ outcome: 'poison', settlement: 'block', cause: 'poison' }));

    expect(await valuesBy(sdk, 'pulsework.outcomes', 'pulsework.outcome')).toEqual({ success: 1, retry: 2, poison: 4 });
    const points = (await sdk.points()).get('pulsework.settlements') ?? [];
    const words = ['pulsework.settlement', 'pulsework.redelivery.strategy'];
    expect(points.map(({ value, attributes }) => [...words.map((name) => attributes[name]), value])).toEqual([
      ['acknowledge', undefined, 1],
      ['redeliver', 'hold', 1],
      ['redeliver', 'local', 1],
      ['dead-letter', undefined, 3],
      ['block', undefined, 1],
    ]);
    expect(await valuesBy(sdk, 'pulsework.dead_letters', 'pulsework.dead_letter.cause')).toEqual({
      poison: 2,
      'process-died': 1,
    });
  });

  it('what is asked of coordinators is counted by call, what failed with its error type', async () => {
    const { sdk, telemetry } = started();
    const run = startRun(telemetry);
    run.startTransaction?.('begin')?.done();
    run.startTransaction?.('commit')?.failed(new TypeError('no'));
    run.startTransaction?.('commit')?.done();
    run.startTransaction?.('abort')?.done();

    const points = (await sdk.points()).get('pulsework.transaction.calls') ?? [];
    const words = ['messaging.operation.name', 'error.type'];
    expect(points.map(({ value, attributes }) => [...words.map((name) => attributes[name]), value])).toEqual([
      ['begin', undefined, 1],
      ['commit', 'TypeError', 1],
      ['commit', undefined, 1],
      ['abort', undefined, 1],
    ]);
  });

  it('acknowledgements are measured only where asked for', async () => {
    const quiet = started();
    expect(startRun(quiet.telemetry).startAcknowledge?.()).toBeUndefined();
    const { sdk, runtime, telemetry } = started({ acknowledgeDuration: true });
    const call = startRun(telemetry).startAcknowledge?.();
    await runtime.clock.advanceBy(3);
    call?.done();
    startRun(telemetry).startAcknowledge?.()?.failed(new RangeError());

    expect(sums((await sdk.points()).get('messaging.client.operation.duration'))).toEqual([
      { count: 1, sum: 0.003, error: undefined },
      { count: 1, sum: 0, error: 'RangeError' },
    ]);
  });
});

describe('of publishes', () => {
  it('each try is counted and measured by topic', async () => {
    const { sdk, runtime, telemetry } = started();
    const message = { payload: null, properties: {} };
    const id = { ledgerId: 1, entryId: 1, partition: -1, batchIndex: -1, batchSize: 0, topic: 'a' };
    for (const failed of [true, false]) {
      const publish = telemetry.startPublish?.({ kind: 'message', topic: 'a', message, run: undefined });
      await runtime.clock.advanceBy(7);
      if (failed) publish?.failed(new RangeError());
      else publish?.done(id);
    }
    const points = await sdk.points();

    expect(sums(points.get('messaging.client.operation.duration'))).toEqual([
      { count: 1, sum: 0.007, error: 'RangeError' },
      { count: 1, sum: 0.007, error: undefined },
    ]);
    expect(await valuesBy(sdk, 'messaging.client.sent.messages', 'error.type')).toEqual({
      RangeError: 1,
      undefined: 1,
    });
  });
});

describe('of health', () => {
  it('gauges are read when metrics are collected', async () => {
    const { sdk, runtime } = started();
    runtime.healths = [
      health({
        state: 'degraded',
        pausedBy: ['outage'],
        dependenciesDown: ['bank'],
        running: 3,
        held: 4,
        kept: 5,
        blocked: 6,
        waitingKeys: 7,
        backlog: 8,
        oldestRunMs: 1_500,
        oldestFailureMs: 90_000,
      }),
    ];
    const points = await sdk.points();
    const values = Object.fromEntries(
      [...points].filter(([name]) => !name.endsWith('.paused')).map(([name, [point]]) => [name, point?.value]),
    );

    expect(values).toEqual({
      'pulsework.deliveries.running': 3,
      'pulsework.deliveries.held': 4,
      'pulsework.deliveries.kept': 5,
      'pulsework.deliveries.blocked': 6,
      'pulsework.keys.waiting': 7,
      'pulsework.subscription.backlog': 8,
      'pulsework.dependencies.down': 1,
      'pulsework.subscription.degraded': 1,
      'pulsework.run.oldest_age': 1.5,
      'pulsework.failure.oldest_age': 90,
    });
    expect(await valuesBy(sdk, 'pulsework.subscription.paused', 'pulsework.pause.reason')).toEqual({
      operator: 0,
      outage: 1,
      'held-full': 0,
      'lane-full': 0,
      'abandoned-runs': 0,
      'broad-failure': 0,
    });
  });

  it('a backlog that is unknown has no point', async () => {
    const { sdk, runtime } = started();
    runtime.healths = [health()];

    expect((await sdk.points()).has('pulsework.subscription.backlog')).toBe(false);
  });

  it('gauges add up over runtimes with the same handler; of a runtime that closed nothing is left', async () => {
    const first = started();
    const second = started({}, first.sdk);
    first.runtime.healths = [health({ held: 1, oldestFailureMs: 1_000 })];
    second.runtime.healths = [health({ held: 10, oldestFailureMs: 9_000 })];
    const held = () => valuesBy(first.sdk, 'pulsework.deliveries.held', 'pulsework.handler');

    expect(await held()).toEqual({ 'Billing.charge': 11 });
    expect(await valuesBy(first.sdk, 'pulsework.failure.oldest_age', 'pulsework.handler')).toEqual({
      'Billing.charge': 9,
    });
    second.telemetry.onClose?.();
    expect(await held()).toEqual({ 'Billing.charge': 1 });
    first.telemetry.onClose?.();
    expect(await held()).toEqual({ 'Billing.charge': 0 });
  });
});

describe('of an outbox', () => {
  const leading: OutboxHealth = {
    ...{ store: 'postgres pulsework', role: 'leading' as const, reason: undefined, relayed: 9, claimed: 1 },
    ...{ waiting: 12, refused: 3, oldestMs: 90_500 },
  };
  const standby: OutboxHealth = {
    ...leading,
    role: 'standby',
    claimed: 0,
    waiting: 0,
    refused: 0,
    oldestMs: undefined,
  };
  const names = ['leading', 'waiting', 'refused', 'oldest_age'];
  const valuesOf = async (sdk: OtelSdk) => {
    const points = await sdk.points();
    return names.map((name) => points.get(`pulsework.outbox.${name}`)?.map(({ value }) => value));
  };

  it('gauges say what waits and since when', async () => {
    const { sdk, runtime } = started();
    runtime.outbox = leading;
    const points = await sdk.points();

    expect(names.map((name) => points.get(`pulsework.outbox.${name}`)?.[0]?.value)).toEqual([1, 12, 3, 90.5]);
    expect(points.get('pulsework.outbox.waiting')?.[0]?.attributes).toEqual({
      'messaging.system': 'pulsar',
      'pulsework.outbox.store': 'postgres pulsework',
    });
  });

  it('gauges of processes add up to those of the one that leads, and read 0 where nobody has it any more', async () => {
    const first = started();
    const second = started({}, first.sdk);
    first.runtime.outbox = standby;
    second.runtime.outbox = leading;

    expect(await valuesOf(first.sdk)).toEqual([[1], [12], [3], [90.5]]);
    second.telemetry.onClose?.();
    expect(await valuesOf(first.sdk)).toEqual([[0], [0], [0], [0]]);
    first.telemetry.onClose?.();
    expect(await valuesOf(first.sdk)).toEqual([[0], [0], [0], [0]]);
  });

  it('there is none without an outbox', async () => {
    const { sdk } = started();

    expect(await valuesOf(sdk)).toEqual(names.map(() => undefined));
  });
});

describe('a runtime that closes', () => {
  it('leaves its counts to be collected, and another one goes on counting', async () => {
    const first = started();
    first.telemetry.onSettled?.(settled());
    first.telemetry.onClose?.();
    const second = started({}, first.sdk);
    second.telemetry.onSettled?.(settled());

    expect(await valuesBy(first.sdk, 'pulsework.outcomes', 'pulsework.outcome')).toEqual({ success: 2 });
  });

  it('measures its drain', async () => {
    const { sdk, runtime, telemetry } = started();
    telemetry.onDrain?.();
    await runtime.clock.advanceBy(2_500);
    telemetry.onClose?.();

    expect(sums((await sdk.points()).get('pulsework.drain.duration'))).toEqual([
      { count: 1, sum: 2.5, error: undefined },
    ]);
  });
});

describe('series are bounded', () => {
  it('by pairs of handler and topic: further ones are counted together', async () => {
    const { sdk, runtime, telemetry } = started({ maxHandlers: 2 });
    for (const [handler, topic] of ['a 1', 'a 2', 'a 3', 'b 1', 'a 1'].map((pair) => pair.split(' ')))
      telemetry.onSettled?.(settled({ handler: handler ?? '', topic: topic ?? '' }));
    runtime.healths = ['a', 'b', 'c', 'd'].map((handler) => health({ handler, held: 1 }));

    expect(await valuesBy(sdk, 'pulsework.outcomes', 'messaging.destination.name')).toEqual({ 1: 2, 2: 1, _other: 2 });
    expect(await valuesBy(sdk, 'pulsework.deliveries.held', 'pulsework.handler')).toEqual({ a: 1, b: 1, _other: 2 });
  });

  it('by the pattern of a handler, which stands for all of its topics', async () => {
    const { sdk, telemetry } = started({ maxHandlers: 2 });
    const topicTemplate = 'public/default/orders-.+';
    for (const topic of ['a', 'b', 'c']) telemetry.onSettled?.(settled({ topic, topicTemplate }));

    expect(await valuesBy(sdk, 'pulsework.outcomes', 'messaging.destination.template')).toEqual({ [topicTemplate]: 3 });
    expect(await valuesBy(sdk, 'pulsework.outcomes', 'messaging.destination.name')).toEqual({ undefined: 3 });
  });

  it('by topics published to', async () => {
    const { sdk, telemetry } = started({ maxHandlers: 2 });
    const message = { payload: null, properties: {} };
    for (const topic of ['a', 'b', 'c', 'd', 'a'])
      telemetry.startPublish?.({ kind: 'message', topic, message, run: undefined })?.failed(new Error());

    expect(await valuesBy(sdk, 'messaging.client.sent.messages', 'messaging.destination.name')).toEqual({
      a: 2,
      b: 1,
      _other: 2,
    });
  });

  it('by error types', async () => {
    const { sdk, telemetry } = started();
    for (let i = 0; i < 60; i++) {
      const error = Object.assign(new Error('x'), { name: `Error${i}` });
      startRun(telemetry).settled(
        settled({ outcome: 'retry', settlement: 'redeliver', failure: { reason: 'x', error } }),
      );
    }
    const points = (await sdk.points()).get('messaging.process.duration') ?? [];
    const other = points.find(({ attributes }) => attributes['error.type'] === '_OTHER');

    expect([points.length, (other?.value as Histogram | undefined)?.count]).toEqual([51, 10]);
  });
});
