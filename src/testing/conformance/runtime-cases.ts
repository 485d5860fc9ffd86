// The runtime on top of a transport: the promises that a user relies on, seen from a handler.
import { fixedBackoff } from '../../core/backoff.js';
import type { Delivery } from '../../core/delivery.js';
import type { Outcome } from '../../core/outcome.js';
import { defer, poison, retry, success } from '../../core/outcome.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import { topic as declareTopic } from '../../core/topic.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, expectTrue, textsOf } from './expectations.js';
import { drain, expectSettled, json, startHandler } from './watched-handler.js';

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `runtime, ${type}: a handler is asked again until it succeeds, and attempts are counted truly`,
    rules: ['G-20: attempt 1 on the first delivery, one more per failed one'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, json('a'), json('b'));
      const runs: string[] = [];
      const handle = ({ payload, attempt }: Delivery): Outcome => {
        runs.push(`${String(payload)}${attempt}`);
        return payload === 'a' && attempt < 3 ? retry('not yet') : success();
      };
      const runtime = await startHandler(world, topic, handle, { type });
      await world.eventually(() => runs.length === 4, 'four runs');
      await drain(world, runtime);
      expectEqual(runs.sort(), ['a1', 'a2', 'a3', 'b1'], 'the runs');
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: what never succeeds becomes a dead letter that says why, and its original goes`,
    rules: [
      'D-11: REAL_TOPIC and ORIGIN_MESSAGE_ID are set',
      'D-12: the origin id is written as ledger:entry:partition',
      'D-05: the limit holds on Exclusive and Failover too, where brokers count nothing',
      'G-20: a limit of 3 means 3 calls, then one dead letter',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const message = { ...json('bad'), key: 'k', properties: { tenant: 'acme' }, eventTimeMs: 5_000 };
      const [id] = await world.publish(topic, message);
      let runs = 0;
      const handle = (): Outcome => ((runs += 1), retry('always busy'));
      const runtime = await startHandler(world, topic, handle, { type });
      await world.eventually(() => runs === 3, 'three runs');
      await drain(world, runtime);
      const letters = await world.readDeadLetters(topic, 'billing');
      expectEqual(textsOf(letters), ['"bad"'], 'the dead letters');
      const [letter] = letters;
      expectEqual([letter?.key, letter?.eventTimeMs], ['k', 5_000], 'key and event time of the dead letter');
      const { properties = {} } = letter ?? {};
      const wanted = {
        tenant: 'acme',
        REAL_TOPIC: topic,
        ORIGIN_MESSAGE_ID: `${id?.ledgerId}:${id?.entryId}:-1`,
        'pulsework-cause': 'redeliveries-exhausted',
        'pulsework-reason': 'always busy',
        'pulsework-attempt': '3',
        'pulsework-handler': 'billing',
      };
      const shown = Object.fromEntries(Object.keys(wanted).map((name) => [name, properties[name]]));
      expectEqual(shown, wanted, 'properties of the dead letter');
      await expectSettled(world, topic, { type });
    },
  }),
);

const others: readonly ConformanceCase[] = [
  {
    title: 'runtime: the dead letter topic of a partitioned topic has no partition in its name',
    rules: [
      'D-08: the dead letter topic is `<topic>-<subscription>-DLQ`',
      'D-09: the partitions of a topic share one dead letter topic, without a partition in its name',
      'D-13: REAL_TOPIC is the full topic name without a partition',
    ],
    async run(world) {
      const topic = await world.newTopic(2);
      await world.publish(topic, { ...json(1), key: 'a' }, { ...json(2), key: 'b' });
      let runs = 0;
      const runtime = await startHandler(world, topic, () => ((runs += 1), poison('wrong')));
      await world.eventually(() => runs === 2, 'two runs');
      await drain(world, runtime);
      const letters = await world.readDeadLetters(topic, 'billing');
      expectEqual(textsOf(letters).sort(), ['1', '2'], 'the dead letters');
      expectEqual(
        letters.map(({ properties }) => properties['REAL_TOPIC']),
        [topic, topic],
        'REAL_TOPIC',
      );
    },
  },
  {
    title: 'runtime: a payload that cannot be read becomes a dead letter with its bytes',
    rules: ['G-18: the dead letter carries the original bytes'],
    async run(world) {
      const topic = await world.newTopic();
      const seen: unknown[] = [];
      await world.publish(topic, { payload: Uint8Array.of(0xff, 0x7b) }, json('fine'));
      const runtime = await startHandler(world, topic, ({ payload }) => (seen.push(payload), success()));
      await world.eventually(() => seen.length === 1, 'the run of the message that can be read');
      await drain(world, runtime);
      const [letter] = await world.readDeadLetters(topic, 'billing');
      expectEqual(
        [letter?.payload, letter?.properties['pulsework-cause']],
        [Uint8Array.of(0xff, 0x7b), 'undecodable'],
        'the dead letter',
      );
      expectEqual(seen, ['fine'], 'what the handler saw');
      await expectSettled(world, topic);
    },
  },
  {
    title: 'runtime: what follows from a message is published with an id that is the same on each repeat',
    rules: [],
    async run(world) {
      const [orders, receipts] = [await world.newTopic(), await world.newTopic()];
      const receipt = declareTopic(receipts);
      const [id] = await world.publish(orders, json('a'));
      let runs = 0;
      const handle = ({ payload }: Delivery): Outcome => {
        runs += 1;
        return success(receipt.message({ order: payload }, { key: 'k' }));
      };
      const runtime = await startHandler(world, orders, handle);
      const reader = await world.subscribe(receipts);
      const message = await reader.takeOne();
      await drain(world, runtime);
      expectEqual([textsOf([message]), message.key, runs], [['{"order":"a"}'], 'k', 1], 'text, key and runs');
      const origin = `${id?.ledgerId}:${id?.entryId}:-1`;
      expectEqual(message.properties['pulsework-message-id'], `${origin}/billing/0`, 'the id of what follows');
      await expectSettled(world, orders);
    },
  },
  {
    title: 'runtime: each attempt sees the original properties',
    rules: ['G-18: every attempt sees the original properties and bytes'],
    async run(world) {
      const topic = await world.newTopic();
      const given = { tenant: 'acme', __count: '1' };
      await world.publish(topic, { ...json('a'), properties: given });
      const seen: unknown[] = [];
      const handle = ({ properties, attempt }: Delivery): Outcome => {
        seen.push({ ...properties });
        return attempt < 3 ? retry() : success();
      };
      const runtime = await startHandler(world, topic, handle);
      await world.eventually(() => seen.length === 3, 'three runs');
      await drain(world, runtime);
      expectEqual(seen, [given, given, given], 'properties on each attempt');
    },
  },
  {
    title: 'runtime: a message put off spends no attempt',
    rules: ['Y-22: waiting for a time uses up no attempt'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, json('a'));
      const attempts: number[] = [];
      const handle = ({ attempt }: Delivery): Outcome => {
        attempts.push(attempt);
        return attempts.length < 4 ? defer(50, 'too early') : success();
      };
      const runtime = await startHandler(world, topic, handle, { redelivery: { maxDeliveries: 2 } });
      await world.eventually(() => attempts.length === 4, 'four runs');
      await drain(world, runtime);
      expectEqual(attempts, [1, 1, 1, 1], 'attempts');
      await expectSettled(world, topic);
    },
  },
  {
    title: 'runtime: a failing key waits, the other keys go on',
    rules: ['K-08: messages of one key are unacknowledged at one consumer only'],
    async run(world) {
      const topic = await world.newTopic();
      const sent = ['bad0', 'good0', 'bad1', 'good1'];
      await world.publish(topic, ...sent.map((text) => ({ ...json(text), key: text.slice(0, -1) })));
      const done: string[] = [];
      const handle = ({ payload, attempt }: Delivery): Outcome => {
        if (payload === 'bad0' && attempt < 3) return retry();
        done.push(String(payload));
        return success();
      };
      const runtime = await startHandler(world, topic, handle, {
        type: 'key-shared',
        ordering: 'key',
        redelivery: { maxDeliveries: 5, backoff: fixedBackoff(300) },
      });
      await world.eventually(() => done.length === 4, 'four successes');
      await drain(world, runtime);
      expectEqual(done, ['good0', 'good1', 'bad0', 'bad1'], 'the order of success');
    },
  },
  {
    title: 'runtime: a drain finishes what runs and gives the rest back uncounted',
    rules: ['A-18: closing does not count as a redelivery', 'G-17: without passing the deadline handlers finish'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...Array.from({ length: 10 }, (_, i) => json(i)));
      const finished: number[] = [];
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      let begun = 0;
      const handle = async ({ payload }: Delivery): Promise<Outcome> => {
        begun += 1;
        await held;
        finished.push(Number(payload));
        return success();
      };
      const runtime = await startHandler(world, topic, handle, { concurrency: 2 });
      await world.eventually(() => begun === 2, 'two runs at a time');
      const draining = runtime.drain({ deadlineMs: 10_000 });
      release();
      const report = await world.until(draining, 'the end of the runtime');
      expectEqual([report.complete, finished.sort()], [true, [0, 1]], 'whether it was complete, and what finished');
      const rest = await world.subscribe(topic, { subscription: 'billing' });
      const messages = await rest.take(8);
      expectTrue(
        messages.every(({ redeliveryCount }) => redeliveryCount === 0),
        'what was given back was counted',
      );
      await rest.expectQuiet();
    },
  },
  {
    title: 'runtime: messages of a batch have a fate of their own',
    rules: [
      'N-22: the unit of redelivery is the entry',
      'N-27: acknowledging one message of a batch does not cancel what waits for another',
      'D-07: a batch is given up message by message',
      'A-11: what was acknowledged of a batch does not come again',
    ],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, json('fine'), json('poison'), json('again'), json('fine'));
      const runs: string[] = [];
      const handle = ({ payload, attempt }: Delivery): Outcome => {
        runs.push(`${String(payload)}${attempt}`);
        if (payload === 'poison') return poison('wrong');
        return payload === 'again' && attempt === 1 ? retry() : success();
      };
      const runtime = await startHandler(world, topic, handle);
      await world.eventually(() => runs.includes('again2'), 'the second run of the one that failed');
      await drain(world, runtime);
      expectEqual(runs.sort(), ['again1', 'again2', 'fine1', 'fine1', 'poison1'], 'the runs');
      expectEqual(textsOf(await world.readDeadLetters(topic, 'billing')), ['"poison"'], 'the dead letters');
      await expectSettled(world, topic);
    },
  },
];

export const runtimeCases: readonly ConformanceCase[] = [...forEachType, ...others];
