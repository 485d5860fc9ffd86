// The handlers of the benchmark of telemetry, and what is registered and given to the runtime for them.
import type { Delivery, Outcome, PayloadOf, RuntimeOptions } from '../../src/index.js';
import { success, topic } from '../../src/index.js';
import { openTelemetry } from '../../src/otel.js';
import { InstrumentsByHand, sentByHand, tracedByHand } from './telemetry-by-hand.js';
import { registerMetrics, registerTracing } from './telemetry-sdk.js';
import type { HandlerWork, orders } from './workload.js';

export type Order = PayloadOf<typeof orders>;
export type Handle = (delivery: Delivery<Order>, work: HandlerWork) => Promise<Outcome>;

const receipts = topic<{ readonly id: string }>('persistent://public/default/receipts');

export const plain: Handle = async ({ payload }, work) => {
  await work.run(payload);
  return success();
};

export const followed: Handle = async ({ payload }, work) => {
  await work.run(payload);
  return success(receipts.message({ id: payload.id }));
};

export const traced: Handle = (delivery, work) => tracedByHand(delivery, () => plain(delivery, work));

export const tracedAndFollowed: Handle = (delivery, work) =>
  tracedByHand(delivery, async () => {
    await work.run(delivery.payload);
    return success(receipts.message({ id: delivery.payload.id }, { properties: sentByHand(receipts.name) }));
  });

let instruments: InstrumentsByHand | undefined;

export function instrumentsByHand(): InstrumentsByHand {
  registerMetrics();
  instruments ??= new InstrumentsByHand();
  return instruments;
}

export const measured: Handle = async ({ payload }, work) => {
  const byHand = instrumentsByHand();
  const startedMs = byHand.started();
  await work.run(payload);
  byHand.ended(startedMs);
  return success();
};

export const withTelemetry = (): Partial<RuntimeOptions> => ({ telemetry: openTelemetry() });

export const withTracing = (): Partial<RuntimeOptions> => {
  registerTracing();
  return {};
};

export const withTracingObserved = (): Partial<RuntimeOptions> => {
  registerTracing();
  return withTelemetry();
};

export const withMetrics = (): Partial<RuntimeOptions> => {
  instrumentsByHand();
  return {};
};

export const withMetricsObserved = (): Partial<RuntimeOptions> => {
  registerMetrics();
  return withTelemetry();
};
