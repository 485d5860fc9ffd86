// How runs end and what follows from it on a subscription: endings that no outcome says, waits that are floors, repeats that
// are not run again, and what is refused before anything is opened.
import type { Delivery } from '../../core/delivery.js';
import type { HandlerOptions } from '../../core/handler-definition.js';
import type { Outcome } from '../../core/outcome.js';
import { poison, retryAfter, success } from '../../core/outcome.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import { deadLetterTopicName } from '../../core/topic-name.js';
import { topic as declareTopic } from '../../core/topic.js';
import type { IdempotencyStore } from '../../ports/idempotency-store.js';
import { idempotent } from '../../runtime/idempotent.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, expectRefused, expectTrue, textsOf } from './expectations.js';
import { WatchedCalls } from './watched-calls.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled, json, startHandler } from './watched-handler.js';

const PUT_OFF_MS = 700;

const endings: readonly ConformanceCase[] = forTypes(
  ['shared', 'exclusive'],
  (type) => ({
    title: `runtime, ${type}: a run that throws, rejects, returns nothing or is cut off by its time limit is a failed one`,
    rules: ['G-16: whatever way a handler ends that is no outcome, its run failed and its message is not lost'],
    async run(world) {
      const topic = await world.newTopic();
      const endings: Readonly<Record<string, () => Promise<Outcome>>> = {
        throws: () => {
          throw new Error('thrown');
        },
        rejects: () => Promise.reject(new Error('rejected')),
        nothing: () => Promise.resolve(undefined as unknown as Outcome),
        hangs: () => new Promise(() => undefined),
      };
      const options = { type, timeoutMs: 500, abandonAfterMs: 0 };
      const handler = await WatchedHandler.start(world, topic, options, ({ payload, attempt }: Delivery) =>
        attempt === 1 ? (endings[String(payload)]?.() ?? success()) : success(),
      );
      const names = Object.keys(endings);
      await world.publish(topic, ...names.map((name) => json(name)));
      const runs = names.flatMap((name) => [`${name}1`, `${name}2`]);
      await handler.until(...runs);
      await handler.drain();
      handler.expectRuns(...runs);
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a message goes only after the receipt of what follows from it`,
    rules: [
      'G-16: the acknowledgement comes after the receipts; a publish that fails in passing is repeated, without another run',
    ],
    async run(world) {
      const [orders, receipts] = [await world.newTopic(), await world.newTopic()];
      const watched = new WatchedCalls(await world.newTransport(), receipts);
      watched.failing = true;
      const receipt = declareTopic(receipts);
      const options = { type, transport: watched.transport };
      const handler = await WatchedHandler.start(world, orders, options, () => success(receipt.message('done')));
      await world.publish(orders, json('a'));
      await world.eventually(() => watched.calls.length > 1, 'the second publish');
      expectEqual(watched.calls.includes('acknowledged'), false, 'whether the message went before');
      watched.failing = false;
      await world.eventually(() => watched.calls.includes('acknowledged'), 'the acknowledgement');
      await handler.drain();
      const last = watched.calls.filter((call) => call !== 'failed');
      expectEqual(last, ['published', 'acknowledged'], 'the calls that succeeded');
      handler.expectRuns('a1');
      await expectSettled(world, orders, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a time to try again is a floor`,
    rules: ['G-21: a retry after a time is not early; here it is at most some seconds late on an idle machine'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { type }, ({ attempt }) =>
        attempt === 1 ? retryAfter(PUT_OFF_MS) : success(),
      );
      await world.publish(topic, json('a'));
      await handler.until('a2');
      await handler.drain();
      const waitedMs = handler.atMs('a2') - handler.atMs('a1');
      expectTrue(waitedMs >= PUT_OFF_MS, `it ran again after ${waitedMs} ms, before its ${PUT_OFF_MS} ms`);
      handler.expectRuns('a1', 'a2');
    },
  }),
);

const once: readonly ConformanceCase[] = [
  {
    title: 'runtime: dead letters of one topic have one producer, also while their publishes fail',
    rules: ['G-06: at most one dead letter producer per topic, also while publishes fail'],
    async run(world) {
      const topic = await world.newTopic();
      const watched = new WatchedCalls(await world.newTransport(), deadLetterTopicName(topic, SUBSCRIPTION));
      watched.failing = true;
      const options = { transport: watched.transport };
      const handler = await WatchedHandler.start(world, topic, options, () => poison('wrong'));
      const texts = ['a', 'b', 'c', 'd', 'e'];
      await world.publish(topic, ...texts.map((text) => json(text)));
      await world.eventually(() => watched.calls.length >= 10, 'two failed publishes each');
      watched.failing = false;
      const published = (): number => watched.calls.filter((call) => call === 'published').length;
      await world.eventually(() => published() === 5, 'the dead letters');
      await handler.drain();
      expectEqual(watched.publishers, 1, 'publishers of the dead letter topic');
      const letters = await world.readDeadLetters(topic, SUBSCRIPTION);
      expectEqual(
        textsOf(letters).sort(),
        texts.map((text) => `"${text}"`),
        'the dead letters',
      );
    },
  },
  {
    title: 'runtime: a repeat of what was done is not run again, and what followed from it is published again',
    rules: ['G-22: a repeated id does not run the handler; what its run had to publish goes out'],
    async run(world) {
      const [orders, receipts] = [await world.newTopic(), await world.newTopic()];
      const receipt = declareTopic(receipts);
      const guard = idempotent({ key: ({ payload }) => String(payload), store: new RecordedKeys(), ttlMs: 60_000 });
      const handler = await WatchedHandler.start(world, orders, { idempotent: guard }, ({ payload }) =>
        success(receipt.message(payload)),
      );
      const reader = await world.subscribe(receipts);
      await world.publish(orders, json('a'));
      await reader.expectTexts('"a"');
      await world.publish(orders, json('a'), json('b'));
      expectEqual(textsOf(await reader.take(2)).sort(), ['"a"', '"b"'], 'what followed');
      await handler.drain();
      handler.expectRuns('a1', 'b1');
      await expectSettled(world, orders);
    },
  },
];

/** Combinations that a broker or the runtime could not honour. */
const REFUSED: readonly (readonly [rule: ConformanceCase['rules'][number], options: HandlerOptions, named: string])[] =
  [
    ['D-06: a limit of 0 deliveries is refused', { redelivery: { maxDeliveries: 0 } }, 'maxDeliveries'],
    ['A-01: the ack timeout is at least 1 s', { ackTimeoutMs: 999 }, 'ackTimeoutMs'],
    ['G-19: an ack timeout must be above the time limit', { ackTimeoutMs: 2_000, timeoutMs: 2_000 }, 'ackTimeoutMs'],
    ['G-19: Failover keeps messages in place', { type: 'failover', ackTimeoutMs: 2_000 }, 'ackTimeoutMs'],
    ['G-19: Exclusive keeps messages in place', { type: 'exclusive', retryTopic: true }, 'retryTopic'],
    ['G-19: Shared cannot keep the order of keys', { type: 'shared', ordering: 'key' }, 'ordering'],
  ];

const refused: readonly ConformanceCase[] = [
  {
    title: 'runtime: what could not be honoured is refused at start, by the name of its option, and opens nothing',
    rules: REFUSED.map(([rule]) => rule),
    async run(world) {
      const topic = await world.newTopic();
      for (const [rule, options, named] of REFUSED) {
        const starting = startHandler(world, topic, () => success(), options);
        const { message } = await expectRefused(starting, 'CONFIGURATION_INVALID', rule);
        expectTrue(message.includes(named), `"${named}" is not named in: ${message}`);
        expectTrue(message.includes('billing'), `the handler is not named in: ${message}`);
      }
      const alone = await world.subscribe(topic, { subscription: SUBSCRIPTION, type: 'exclusive' });
      await alone.expectQuiet(50);
    },
  },
];

/** Keys of one case: recorded ones stay. */
class RecordedKeys implements IdempotencyStore {
  readonly name = 'keys';
  readonly #recorded = new Map<string, RecordedOutcome>();

  async claim(key: string): ReturnType<IdempotencyStore['claim']> {
    const outcome = this.#recorded.get(key);
    return outcome === undefined ? { kind: 'claimed' } : { kind: 'recorded', outcome };
  }

  async renew(): Promise<boolean> {
    return true;
  }

  async record(key: string, _owner: string, outcome: RecordedOutcome): Promise<boolean> {
    this.#recorded.set(key, outcome);
    return true;
  }

  async release(): Promise<void> {}
}

export const settlementCases: readonly ConformanceCase[] = [...endings, ...once, ...refused];
