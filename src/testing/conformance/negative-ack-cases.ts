// What a failed run waits for, and that nothing starves it: the delays of negative acknowledgement, seen from a handler.
import { exponentialBackoff, fixedBackoff } from '../../core/backoff.js';
import { retry, retryAfter, success } from '../../core/outcome.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectTrue } from './expectations.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled, json } from './watched-handler.js';

/** Longer than any case has patience for. */
const FOREVER_MS = 600_000;
const MANY = 2_500;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `runtime, ${type}: a steady stream of failures does not put off what is due`,
    rules: ['N-20: a steady stream of negative acknowledgements never postpones what is due'],
    async run(world) {
      const topic = await world.newTopic();
      const redelivery = { maxDeliveries: 5, backoff: fixedBackoff(600) };
      const handler = await WatchedHandler.start(world, topic, { type, redelivery }, ({ attempt }) =>
        attempt === 1 ? retry() : success(),
      );
      const names: string[] = [];
      for (let i = 0; i < 40; i++) {
        await world.publish(topic, json(`${i}-`, { key: `k${i}` }));
        names.push(`${i}-1`, `${i}-2`);
        await world.elapse(50);
      }
      await handler.until(...names);
      await handler.drain();
      handler.expectRuns(...names);
      const waitedMs = handler.atMs('0-2') - handler.atMs('0-1');
      expectTrue(waitedMs >= 600, `it came back after ${waitedMs} ms, before its 600 ms`);
      const [cameBack, streamEnded] = ['0-2', '39-1'].map((name) => handler.names.indexOf(name));
      expectTrue((cameBack ?? 0) < (streamEnded ?? 0), `it came back after ${waitedMs} ms, when the stream had ended`);
    },
  }),
  (type) => ({
    title: `runtime, ${type}: the first failure waits the minimum of the backoff, the next ones more`,
    rules: [
      'N-09: the backoff is asked with the number of redeliveries so far, so the first failure waits the minimum',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const backoff = exponentialBackoff({ minMs: 200, maxMs: 60_000, multiplier: 10 });
      const handler = await WatchedHandler.start(world, topic, { type, redelivery: { backoff } }, ({ attempt }) =>
        attempt < 3 ? retry() : success(),
      );
      await world.publish(topic, json('a'));
      await handler.until('a3');
      await handler.drain();
      const [first, second] = [handler.atMs('a2') - handler.atMs('a1'), handler.atMs('a3') - handler.atMs('a2')];
      expectTrue(first >= 200 && first < 2_000, `the first wait must be 200 ms, was ${first}`);
      expectTrue(second >= 2_000, `the second wait must be 2,000 ms, was ${second}`);
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: no message runs again before its time, whatever the others wait`,
    rules: ['N-17: due times are kept to the millisecond; nothing is asked back early'],
    async run(world) {
      const topic = await world.newTopic();
      const waitOf = (index: unknown): number => 100 + ((Number(index) * 37) % 20) * 25;
      const handler = await WatchedHandler.start(world, topic, { type }, ({ payload, attempt }) =>
        attempt === 1 ? retryAfter(waitOf(String(payload).slice(0, -1))) : success(),
      );
      const indexes = Array.from({ length: 20 }, (_, i) => i);
      await world.publish(topic, ...indexes.map((i) => json(`${i}-`, { key: `k${i}` })));
      await handler.until(...indexes.map((i) => `${i}-2`));
      await handler.drain();
      for (const i of indexes) {
        const waitedMs = handler.atMs(`${i}-2`) - handler.atMs(`${i}-1`);
        expectTrue(waitedMs >= waitOf(i), `message ${i} ran again after ${waitedMs} ms, before its ${waitOf(i)} ms`);
      }
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a short wait does not stand behind a long one`,
    rules: ['N-18: an earlier due time moves the timer forward'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { type }, ({ payload, attempt }) => {
        if (attempt > 1) return success();
        return retryAfter(payload === 'long' ? FOREVER_MS : 200);
      });
      await world.publish(topic, json('long', { key: 'a' }));
      await handler.until('long1');
      await world.publish(topic, json('short', { key: 'b' }));
      await handler.until('short2');
      await handler.drain();
      handler.expectRuns('long1', 'short1', 'short2');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: what waits goes back at once when its consumer closes, uncounted`,
    rules: ['N-16: a consumer that goes away gives its messages back at once', 'A-18: closing does not count'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { type }, () => retryAfter(FOREVER_MS));
      await world.publish(topic, json('a'));
      await world.eventually(() => handler.waiting === 1, 'it waits');
      await handler.drain();
      const next = await world.subscribe(topic, { type, subscription: SUBSCRIPTION });
      expectEqual(countsOf([await next.takeOne()]), [0], 'the redelivery count');
    },
  }),
);

const onMulti: readonly ConformanceCase[] = forTypes(
  ['shared', 'key-shared'],
  (type) => ({
    title: `runtime, ${type}: a wait of 0 means at once`,
    rules: ['N-11: an explicit delay of 0 asks for redelivery at once'],
    async run(world) {
      const topic = await world.newTopic();
      const redelivery = { maxDeliveries: 10, backoff: fixedBackoff(0) };
      const handler = await WatchedHandler.start(world, topic, { type, redelivery }, ({ attempt }) =>
        attempt < 6 ? retry() : success(),
      );
      await world.publish(topic, json('a'));
      await handler.until('a6');
      await handler.drain();
      handler.expectRuns('a1', 'a2', 'a3', 'a4', 'a5', 'a6');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a failed run has no ack timeout while it waits`,
    rules: ['N-25: a negative acknowledgement ends the ack timeout of its message at once'],
    async run(world) {
      const topic = await world.newTopic();
      const options = { type, ackTimeoutMs: 1_000, redelivery: { backoff: fixedBackoff(2_200) } };
      const handler = await WatchedHandler.start(world, topic, options, ({ attempt }) =>
        attempt === 1 ? retry() : success(),
      );
      await world.publish(topic, json('a'));
      await handler.until('a2');
      await handler.drain();
      const waitedMs = handler.atMs('a2') - handler.atMs('a1');
      expectTrue(waitedMs >= 2_200, `it ran again after ${waitedMs} ms, before its 2,200 ms`);
      expectEqual(handler.runs[1]?.delivery.redeliveryCount, 1, "the broker's count: one request");
    },
  }),
  (type) => ({
    title: `${type}: ${MANY} ids are asked back in one call`,
    rules: ['N-21: one request carries at most 1,000 ids; a client splits longer lists'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const publisher = await world.publisher(topic);
      const payload = new Uint8Array(8);
      const publishing = Array.from({ length: MANY }, (_, i) =>
        publisher.publish({ payload, key: `k${i}`, properties: {} }, publisher.nextSequenceId()),
      );
      const ids = await world.until(Promise.all(publishing), 'the receipts');
      const subscription = await world.subscribe(topic, { type, prefetch: 3_000 });
      await subscription.take(MANY);
      await world.until(subscription.port.redeliver(ids), 'the request');
      // Producers may batch, and of a batch in which nothing was acknowledged each message comes again.
      const again = await subscription.take(MANY);
      expectEqual([...new Set(countsOf(again))], [1], 'the redelivery counts');
      await subscription.acknowledge(...again);
      await subscription.expectQuiet();
    },
  }),
);

export const negativeAckCases: readonly ConformanceCase[] = [...forEachType, ...onMulti];
