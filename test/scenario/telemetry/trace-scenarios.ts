// What golden traces are taken of. A scenario knows no transport and no clock: it waits for what it can see, so that the
// same ones run in virtual time and on a real broker, where they take a few seconds.
import { SpanKind, trace } from '@opentelemetry/api';
import { z } from 'zod';
import type {
  BatchOutcome,
  Delivery,
  HandlerOptions,
  Outcome,
  Runtime,
  RuntimeOptions,
  Topic,
} from '../../../src/index.js';
import {
  defineHandler,
  fixedBackoff,
  minutes,
  poison,
  retry,
  retryAfter,
  seconds,
  success,
  textCodec,
  topic,
} from '../../../src/index.js';

export interface TracedPlace {
  /** With traces on and no jitter. Topic names are this place's own where it must share a broker. */
  start(options: Pick<RuntimeOptions, 'handlers'>): Promise<Runtime>;
  /** Until it holds; a minute is enough for every scenario. */
  until(condition: () => boolean): Promise<void>;
  drain(runtime: Runtime, deadlineMs: number): Promise<void>;
}

export interface TraceScenario {
  /** Also the name of the file with what is expected. */
  readonly name: string;
  run(place: TracedPlace): Promise<void>;
}

const Order = z.object({ id: z.string() });
const orders = topic('orders', { payload: Order });
const receipts = topic('receipts', { payload: Order });
const SECOND = { redelivery: { backoff: fixedBackoff(seconds(1)), maxDeliveries: 3 } };

class CardDeclined extends Error {}
class BankDown extends Error {}

/** Publishes within a span of the application, as a request handler does. */
async function request<T>(runtime: Runtime, to: Topic<T>, ...payloads: readonly T[]): Promise<void> {
  await trace.getTracer('app').startActiveSpan('request', { kind: SpanKind.SERVER }, async (span) => {
    for (const payload of payloads) await runtime.publisher(to).publish(payload);
    span.end();
  });
}

function billing(
  handle: (order: Delivery<{ id: string }>) => Outcome | Promise<Outcome>,
  more: HandlerOptions = SECOND,
) {
  return defineHandler({ name: 'Billing.charge', source: orders, subscription: 'billing', ...more, handle });
}

export const traceScenarios: readonly TraceScenario[] = [
  {
    name: 'success',
    async run(place) {
      let mailed = 0;
      const mail = defineHandler({
        name: 'Mail.send',
        source: receipts,
        subscription: 'mail',
        handle: () => (mailed++, success()),
      });
      const charge = billing(({ payload }) => success(receipts.message(payload)));
      const runtime = await place.start({ handlers: [charge, mail] });
      await request(runtime, orders, { id: 'o-1' });
      await place.until(() => mailed === 1);
    },
  },
  {
    name: 'retry-then-success',
    async run(place) {
      let done = false;
      const charge = billing(({ attempt }) => {
        if (attempt === 1) throw new CardDeclined('card declined');
        if (attempt === 2) return retry('the gateway is busy');
        done = true;
        return success();
      });
      const runtime = await place.start({ handlers: [charge] });
      await request(runtime, orders, { id: 'o-1' });
      await place.until(() => done);
    },
  },
  {
    name: 'dead-letter',
    async run(place) {
      const letters: unknown[] = [];
      const watch = defineHandler({
        name: 'Operations.look',
        source: 'orders-billing-DLQ',
        subscription: 'operations',
        handle: ({ properties }) => (letters.push(properties['pulsework-cause']), success()),
      });
      const charge = billing(({ payload, attempt }) => {
        if (payload.id === 'o-2') return poison('no such customer');
        throw new CardDeclined(`card declined ${attempt}`);
      });
      const runtime = await place.start({ handlers: [charge, watch] });
      await request(runtime, orders, { id: 'o-1' });
      await place.until(() => letters.length === 1);
      await request(runtime, orders, { id: 'o-2' });
      await place.until(() => letters.length === 2);
    },
  },
  {
    name: 'undecodable',
    async run(place) {
      let letters = 0;
      const watch = defineHandler({
        name: 'Operations.look',
        source: 'orders-billing-DLQ',
        subscription: 'operations',
        codec: textCodec,
        handle: () => (letters++, success()),
      });
      const runtime = await place.start({ handlers: [billing(() => success()), watch] });
      await request(runtime, topic('orders', { payload: z.string() }), 'no order');
      await place.until(() => letters === 1);
    },
  },
  {
    name: 'republished-retry',
    async run(place) {
      let done = 0;
      const charge = billing(
        ({ payload, attempt }) => {
          if (payload.id === 'o-1') return retryAfter(minutes(5), 'takes the only place to wait');
          if (attempt === 1) return retryAfter(seconds(1), 'the gateway is busy');
          done++;
          return success();
        },
        { ...SECOND, retryTopic: true, maxHeld: 1, concurrency: 1 },
      );
      const runtime = await place.start({ handlers: [charge] });
      await request(runtime, orders, { id: 'o-1' }, { id: 'o-2' });
      await place.until(() => done === 1);
    },
  },
  {
    name: 'batch',
    async run(place) {
      const settled: string[] = [];
      const charge = defineHandler({
        name: 'Billing.chargeAll',
        source: orders,
        subscription: 'billing',
        ...SECOND,
        batch: { maxMessages: 3, maxWaitMs: seconds(2) },
        handle: (all): BatchOutcome =>
          all.map(({ payload: { id }, attempt }) => {
            settled.push(`${id}#${attempt}`);
            return id === 'o-2' && attempt === 1 ? retry('again') : success(receipts.message({ id }));
          }),
      });
      const runtime = await place.start({ handlers: [charge] });
      await request(runtime, orders, { id: 'o-1' }, { id: 'o-2' }, { id: 'o-3' });
      await place.until(() => settled.includes('o-2#2'));
    },
  },
  {
    name: 'outage',
    async run(place) {
      let asked = 0;
      let done = 0;
      const options = {
        ...SECOND,
        concurrency: 1,
        outage: [{ dependency: 'bank', errors: [BankDown], retryAfterMs: seconds(1) }],
      };
      const charge = billing(() => {
        if (++asked <= 2) throw new BankDown('no connection');
        done++;
        return success();
      }, options);
      const runtime = await place.start({ handlers: [charge] });
      await request(runtime, orders, { id: 'o-1' });
      await place.until(() => done === 1);
    },
  },
  {
    name: 'drain',
    async run(place) {
      let waiting = false;
      let done = false;
      const first = await place.start({
        handlers: [
          billing(
            ({ signal }) =>
              new Promise((_resolve, reject) => {
                waiting = true;
                signal.addEventListener('abort', () => reject(signal.reason as Error));
              }),
          ),
        ],
      });
      await request(first, orders, { id: 'o-1' });
      await place.until(() => waiting);
      await place.drain(first, 0);
      await place.start({ handlers: [billing(() => ((done = true), success()))] });
      await place.until(() => done);
    },
  },
];
