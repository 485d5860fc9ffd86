// What observing costs per message beside the same runtime that nobody observes: OpenTelemetry without an SDK, spans of
// which one in a hundred is sampled, metrics, log lines, `currentDelivery()`. Each message has a `traceparent`. Spans and
// metrics are compared with what the same SDK costs where it is used by hand in the handler.
import { pino } from 'pino';
import { Runtime, consoleLogger, defineHandler, pinoLogger } from '../../src/index.js';
import type { ReceivedMessage, RuntimeOptions } from '../../src/index.js';
import { runBareLoop } from './bare-loop.js';
import { silentLogger } from './runtime-benchmark.js';
import {
  followed,
  instrumentsByHand,
  measured,
  plain,
  traced,
  tracedAndFollowed,
  withMetrics,
  withMetricsObserved,
  withTelemetry,
  withTracing,
  withTracingObserved,
} from './telemetry-handlers.js';
import type { Handle, Order } from './telemetry-handlers.js';
import { checkRecorded, sentWith } from './telemetry-sdk.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { HandlerWork, MESSAGES, SUBSCRIPTION, backlogOf, bareSubscription, orders } from './workload.js';

const IN_FLIGHT = [1, 64];
const WARM_UP_ROUNDS = 3;

export const telemetryBenchmark: Benchmark = {
  name: 'telemetry',
  processes: 2,
  rounds: 7,
  variants: [...IN_FLIGHT.flatMap((inFlight) => variantsAt(inFlight)), ...followUpVariants(64)],
};

/** Next to one another stand those that are compared. */
function variantsAt(inFlight: number): Variant[] {
  const named = (name: string): string => `${name}, ${inFlight} in flight`;
  const variant = (name: string, baseline: string | undefined, measure: () => Promise<Measurement>): Variant => ({
    name: named(name),
    warmUpRounds: WARM_UP_ROUNDS,
    baseline: baseline && named(baseline),
    measure,
  });
  const observed = (handle: Handle, options: () => Partial<RuntimeOptions> = () => ({})) => {
    return () => measureRuntime(inFlight, handle, options);
  };
  return [
    variant('bare loop', undefined, () => measureBareLoop(inFlight, false)),
    {
      ...variant('bare loop, instruments by hand', 'bare loop', () => measureBareLoop(inFlight, true)),
      lessBaseline: true,
    },
    variant('metrics by hand', 'runtime', observed(measured, withMetrics)),
    variant('metrics', 'metrics by hand', observed(plain, withMetricsObserved)),
    variant('runtime', undefined, observed(plain)),
    variant('API without SDK', 'runtime', observed(plain, withTelemetry)),
    variant(
      'currentDelivery',
      'runtime',
      observed(plain, () => ({ currentDelivery: true })),
    ),
    variant('spans 1 % by hand', 'runtime', observed(traced, withTracing)),
    variant('spans 1 %', 'spans 1 % by hand', observed(plain, withTracingObserved)),
    variant(
      'console, info',
      'runtime',
      observed(plain, () => ({ logger: consoleAt('info') })),
    ),
    variant(
      'console, debug',
      'console, info',
      observed(plain, () => ({ logger: consoleAt('debug') })),
    ),
    variant(
      'pino, info',
      'runtime',
      observed(plain, () => ({ logger: pinoAt('info') })),
    ),
    variant(
      'pino, debug',
      'pino, info',
      observed(plain, () => ({ logger: pinoAt('debug') })),
    ),
  ];
}

/** Each message has one follow-up: a second span, and its context in the properties. */
function followUpVariants(inFlight: number): Variant[] {
  const base = `runtime with a follow-up, ${inFlight} in flight`;
  const byHand = `spans 1 % by hand with a follow-up, ${inFlight} in flight`;
  const measure = (handle: Handle, options: () => Partial<RuntimeOptions> = () => ({})) => {
    return () => measureRuntime(inFlight, handle, options);
  };
  const warmUpRounds = WARM_UP_ROUNDS;
  return [
    { name: base, warmUpRounds, measure: measure(followed) },
    { name: byHand, warmUpRounds, baseline: base, measure: measure(tracedAndFollowed, withTracing) },
    {
      name: `spans 1 % with a follow-up, ${inFlight} in flight`,
      warmUpRounds,
      baseline: byHand,
      measure: measure(followed, withTracingObserved),
    },
  ];
}

const NOWHERE = { write: (): void => undefined };

function consoleAt(level: 'info' | 'debug'): RuntimeOptions['logger'] {
  return consoleLogger({ level, write: NOWHERE.write });
}

function pinoAt(level: 'info' | 'debug'): RuntimeOptions['logger'] {
  return pinoLogger(pino({ level }, NOWHERE));
}

async function measureRuntime(
  inFlight: number,
  handle: Handle,
  options: () => Partial<RuntimeOptions>,
): Promise<Measurement> {
  const transport = await backlogOf(MESSAGES, undefined, sentWith);
  const work = new HandlerWork(inFlight);
  const handler = defineHandler({
    name: 'charge',
    source: orders,
    subscription: SUBSCRIPTION,
    concurrency: inFlight,
    handle: (delivery) => handle(delivery, work),
  });
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: silentLogger, ...options() });
  const measurement = await work.measured(transport);
  await runtime.drain();
  await checkRecorded();
  return measurement;
}

async function measureBareLoop(inFlight: number, counted: boolean): Promise<Measurement> {
  const byHand = counted ? instrumentsByHand() : undefined;
  const transport = await backlogOf(MESSAGES, undefined, sentWith);
  const work = new HandlerWork(inFlight);
  const subscription = await transport.subscribe(bareSubscription(inFlight));
  const loop = runBareLoop(subscription, inFlight, async (message) => {
    const startedMs = byHand?.started();
    await work.run(await checkedOrder(message));
    await subscription.acknowledge([message.id]);
    if (startedMs !== undefined) byHand?.ended(startedMs);
  });
  const measurement = await work.measured(transport);
  await transport.close();
  await loop;
  await checkRecorded();
  return measurement;
}

async function checkedOrder({ payload }: ReceivedMessage): Promise<Order> {
  const { codec, schema } = orders;
  if (schema === undefined) throw new Error('the workload has a schema');
  const result = await schema['~standard'].validate(payload === null ? null : codec.decode(payload));
  if (result.issues !== undefined) throw new Error('the payload does not match its schema');
  return result.value;
}
