// Retry letters: a wait that is not held here goes to the retry letter topic and comes back from it, with attempt, due
// time and origin. One message waits all the time, so that with `maxHeld` of 1 the next wait is published again.
import { fixedBackoff } from '../../core/backoff.js';
import { formatMessageId } from '../../core/message-id.js';
import type { Outcome } from '../../core/outcome.js';
import { retry, retryAfter, success } from '../../core/outcome.js';
import { retryTopicName } from '../../core/topic-name.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { expectEqual, expectTrue, textOf, textsOf } from './expectations.js';
import { WatchedCalls } from './watched-calls.js';
import { SUBSCRIPTION, WatchedHandler, json } from './watched-handler.js';
import type { Handle, WatchedHandlerOptions } from './watched-handler.js';

const DELAY_MS = 700;
/** Held on Key_Shared, too. */
const BLOCKED_MS = 50_000;

/** A handler whose next wait is published again: its one place to hold something is taken. */
async function startBlocked(
  world: ConformanceWorld,
  topic: string,
  options: WatchedHandlerOptions,
  handle: Handle,
): Promise<WatchedHandler> {
  const redelivery = { maxDeliveries: 3, backoff: fixedBackoff(DELAY_MS) };
  const outcomeOf: Handle = (delivery) => (delivery.payload === 'blocker' ? retryAfter(BLOCKED_MS) : handle(delivery));
  const blocked = { maxHeld: 1, retryTopic: true, redelivery, ...options };
  const handler = await WatchedHandler.start(world, topic, blocked, outcomeOf);
  await world.publish(topic, json('blocker', { key: 'blocker' }));
  await world.eventually(() => handler.waiting === 1, 'the place is taken');
  return handler;
}

const failTwice: Handle = ({ attempt }): Outcome => (attempt < 3 ? retry('not yet') : success());

const cases: readonly ConformanceCase[] = forTypes(
  ['shared', 'key-shared'],
  (type) => ({
    title: `runtime, ${type}: what is published again comes back when due, as the original with the attempt carried`,
    rules: [
      'D-20: the retry letter topic is read on a Shared subscription beside the own one',
      'D-22: a letter is a new message to the broker, whose count begins at 0: only the properties carry the history',
      'G-18: every attempt sees the original properties',
    ],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await startBlocked(world, topic, { type }, failTwice);
      const properties = { tenant: 'acme' };
      const [id] = await world.publish(topic, json('a', { key: 'k', eventTimeMs: 9_000, properties }));
      await handler.until('a3');
      await handler.drain();
      handler.expectRuns('blocker1', 'a1', 'a2', 'a3');
      const originId = id === undefined ? 'unknown' : formatMessageId(id);
      for (const { name, delivery } of handler.runs.slice(1)) {
        const { originId: origin, topic: from, key, eventTimeMs, properties: seen, redeliveryCount } = delivery;
        expectEqual([origin, from, key, eventTimeMs, redeliveryCount], [originId, topic, 'k', 9_000, 0], name);
        expectEqual({ ...seen }, properties, `the properties of ${name}`);
      }
      for (const [one, next] of [
        ['a1', 'a2'],
        ['a2', 'a3'],
      ] as const) {
        const waitedMs = handler.atMs(next) - handler.atMs(one);
        expectTrue(waitedMs >= DELAY_MS, `${next} began ${waitedMs} ms after ${one}, before its ${DELAY_MS} ms`);
      }
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a retry letter says where it came from, how often and how long it waits, as Java writes it`,
    rules: [
      'D-21: RECONSUMETIMES is one more than before, DELAY_TIME the wait in milliseconds',
      'D-11: REAL_TOPIC and ORIGIN_MESSAGE_ID are set',
      'Y-02: only Shared and Key_Shared honour a delivery time',
    ],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      // On Exclusive nothing is delayed: the letters are seen when they are published.
      const desk = await world.subscribe(retryTopicName(topic, SUBSCRIPTION), {
        subscription: 'desk',
        type: 'exclusive',
      });
      const handler = await startBlocked(world, topic, { type }, failTwice);
      const [id] = await world.publish(topic, json('a', { properties: { tenant: 'acme' } }));
      const letters = await desk.take(2);
      await handler.until('a3');
      await handler.drain();
      const originId = id === undefined ? 'unknown' : formatMessageId(id);
      for (const [index, letter] of letters.entries()) {
        const { RECONSUMETIMES, DELAY_TIME, REAL_TOPIC, ORIGIN_MESSAGE_ID, tenant } = letter.properties;
        const shown = [textOf(letter), RECONSUMETIMES, DELAY_TIME, REAL_TOPIC, ORIGIN_MESSAGE_ID, tenant];
        const wanted = ['"a"', String(index + 1), String(DELAY_MS), topic, originId, 'acme'];
        expectEqual(shown, wanted, `retry letter ${index + 1}`);
        const waitMs = (letter.deliverAtMs ?? 0) - handler.atMs(`a${index + 1}`);
        expectTrue(waitMs >= DELAY_MS, `letter ${index + 1} is due ${waitMs} ms after its run began`);
      }
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a letter of another client goes on with its count, and dies with its first origin`,
    rules: [
      'D-21: RECONSUMETIMES carries how often the message was published again',
      'D-11: REAL_TOPIC and ORIGIN_MESSAGE_ID are set once and kept by later copies',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { type, retryTopic: true }, () => retry('never'));
      const origin = { REAL_TOPIC: topic, ORIGIN_MESSAGE_ID: '7:8:-1' };
      const properties = { tenant: 'acme', RECONSUMETIMES: '1', DELAY_TIME: '50', ...origin };
      await world.publish(retryTopicName(topic, SUBSCRIPTION), json('a', { properties }));
      await handler.until('a3');
      await handler.drain();
      handler.expectRuns('a2', 'a3');
      expectEqual({ ...handler.runs[0]?.delivery.properties }, { tenant: 'acme' }, 'the properties of the handler');
      const letters = await world.readDeadLetters(topic, SUBSCRIPTION);
      const { REAL_TOPIC, ORIGIN_MESSAGE_ID } = letters[0]?.properties ?? {};
      expectEqual([textsOf(letters), { REAL_TOPIC, ORIGIN_MESSAGE_ID }], [['"a"'], origin], 'the dead letter');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a message goes only after the receipt of its retry letter`,
    rules: ['D-22: when the letter cannot be published the original stays', 'D-17: publish, then acknowledge'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const watched = new WatchedCalls(await world.newTransport(), retryTopicName(topic, SUBSCRIPTION));
      watched.failing = true;
      const handler = await startBlocked(world, topic, { type, transport: watched.transport }, ({ attempt }) =>
        attempt === 1 ? retry() : success(),
      );
      await world.publish(topic, json('a'));
      await world.eventually(() => watched.calls.length > 1, 'the second publish of the letter');
      expectEqual(watched.calls.includes('acknowledged'), false, 'whether the original went before');
      watched.failing = false;
      await handler.until('a2');
      await handler.drain();
      const done = watched.calls.filter((call) => call !== 'failed');
      expectEqual(done, ['published', 'acknowledged', 'acknowledged'], 'the calls that succeeded');
      handler.expectRuns('blocker1', 'a1', 'a2');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: what was published again to the end is one dead letter`,
    rules: [
      'D-21: past the limit the message is a dead letter',
      'G-20: a limit of 3 means 3 calls, then one dead letter',
    ],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await startBlocked(world, topic, { type }, () => retry('never'));
      const [id] = await world.publish(topic, json('a'));
      await handler.until('a3');
      await handler.drain();
      handler.expectRuns('blocker1', 'a1', 'a2', 'a3');
      const letters = await world.readDeadLetters(topic, SUBSCRIPTION);
      const { REAL_TOPIC, ORIGIN_MESSAGE_ID } = letters[0]?.properties ?? {};
      const origin = [topic, id === undefined ? 'unknown' : formatMessageId(id)];
      expectEqual([textsOf(letters), [REAL_TOPIC, ORIGIN_MESSAGE_ID]], [['"a"'], origin], 'the dead letter');
    },
  }),
);

export const retryLetterCases: readonly ConformanceCase[] = cases;
