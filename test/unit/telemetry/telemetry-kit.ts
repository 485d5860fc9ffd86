// What the runtime would tell the telemetry: starts and reports with everything filled in.
import { copyProperties } from '../../../src/core/properties.js';
import type { OutboxHealth, SubscriptionHealth } from '../../../src/ports/runtime-view.js';
import type { RunObserver, RunStart, SettlementReport, Telemetry } from '../../../src/ports/telemetry.js';
import type { LogFields, Logger } from '../../../src/index.js';
import { FakeClock } from '../../../src/testing.js';

export const TOPIC = 'persistent://public/default/orders';
export const TRACE = '11111111111111111111111111111111';
export const CREATION = '2222222222222222';
export const TRACEPARENT = `00-${TRACE}-${CREATION}-01`;

export class RuntimeStub {
  readonly clock = new FakeClock();
  readonly transport = 'test';
  readonly lines: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  healths: SubscriptionHealth[] = [];
  outbox: OutboxHealth | undefined;

  get logger(): Logger {
    const at = (level: string) => (message: string, fields?: LogFields) =>
      void this.lines.push({ level, message, fields });
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  }

  health(): readonly SubscriptionHealth[] {
    return this.healths;
  }

  outboxHealth(): OutboxHealth | undefined {
    return this.outbox;
  }
}

export function runStart(more: Partial<RunStart> = {}): RunStart {
  return {
    handler: 'Billing.charge',
    subscription: 'billing',
    topic: TOPIC,
    id: { ledgerId: 7, entryId: 8, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC },
    key: undefined,
    properties: copyProperties({ traceparent: TRACEPARENT }),
    attempt: 1,
    redeliveryCount: 0,
    payloadBytes: 12,
    ...more,
  };
}

export function settled(more: Partial<SettlementReport> = {}): SettlementReport {
  const { handler, subscription, topic, id, key, properties, attempt } = runStart();
  const rest = { outcome: 'success', settlement: 'acknowledge', durationMs: 5 } as const;
  return { handler, subscription, topic, id, key, properties, attempt, ...rest, ...more };
}

export function health(more: Partial<SubscriptionHealth> = {}): SubscriptionHealth {
  return {
    handler: 'Billing.charge',
    subscription: 'billing',
    topics: [TOPIC],
    fullKey: undefined,
    throttled: 0,
    deliveryPause: undefined,
    state: 'running',
    reason: undefined,
    pausedBy: [],
    dependenciesDown: [],
    running: 0,
    oldestRunMs: undefined,
    lastDeliveryMs: undefined,
    held: 0,
    oldestFailureMs: undefined,
    kept: 0,
    blocked: 0,
    waitingKeys: 0,
    backlog: undefined,
    ...more,
  };
}

/** Starts a run that must be observed. */
export function startRun(telemetry: Telemetry, more: Partial<RunStart> = {}): RunObserver {
  const run = telemetry.startRun?.(runStart(more));
  if (run === undefined) throw new Error('the run is not observed');
  return run;
}
