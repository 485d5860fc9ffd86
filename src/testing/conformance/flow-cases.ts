// Flow: who gets how many messages, pauses, and what a waiting `receive` does at the end.
import type { ConformanceCase } from './conformance-case.js';
import { expectEqual, expectTrue, textsOf } from './expectations.js';
import { takeFromAny } from './test-subscription.js';

const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

const bounds: readonly ConformanceCase[] = [
  {
    title: 'no more than the prefetch lies in a client that takes nothing',
    rules: ['S-10: without permits nothing is sent'],
    async run(world) {
      const topic = await world.newTopic();
      const slow = await world.subscribe(topic, { prefetch: 3 });
      const quick = await world.subscribe(topic, { transport: await world.newTransport() });
      await world.publish(topic, ...numbers(30));
      await quick.take(27);
      await quick.expectQuiet();
      await slow.take(3);
      await slow.expectQuiet();
    },
  },
  {
    title: 'with a prefetch of 0 nothing lies in a client that does not ask',
    rules: ['S-10: without permits nothing is sent'],
    async run(world) {
      const topic = await world.newTopic();
      const idle = await world.subscribe(topic, { prefetch: 0 });
      const quick = await world.subscribe(topic, { transport: await world.newTransport() });
      await world.publish(topic, ...numbers(10));
      await quick.take(10);
      await idle.expectQuiet();
    },
  },
  {
    title: 'permits come back as messages are taken, acknowledged or not',
    rules: ['S-10: a client grants permits in lots of half its queue'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...numbers(60));
      for (const prefetch of [0, 1, 2, 5]) {
        const subscription = await world.subscribe(topic, { prefetch, subscription: `s${prefetch}` });
        await subscription.expectTexts(...numbers(60));
      }
    },
  },
  {
    title: 'shared: two consumers get all messages, each one once',
    rules: ['S-04: Shared goes round its consumers'],
    async run(world) {
      const topic = await world.newTopic();
      const one = await world.subscribe(topic, { prefetch: 5 });
      const two = await world.subscribe(topic, { prefetch: 5, transport: await world.newTransport() });
      await world.publish(topic, ...numbers(100));
      const taken = await takeFromAny(world, [one, two], 100);
      const sorted = textsOf(taken.flat()).sort((a, b) => Number(a) - Number(b));
      expectEqual(sorted, numbers(100), 'what both got');
      expectTrue(
        taken.every((messages) => messages.length > 0),
        'each of two consumers with equal permits gets some',
      );
    },
  },
  {
    title: 'what a consumer may still get is its prefetch less what lies in it',
    rules: ['S-11: permits count messages'],
    needs: ['statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 10, consumerName: 'c' });
      await world.publish(topic, ...numbers(4));
      await world.eventually(async () => (await world.figures(topic)).permits['c'] === 6, '6 permits are left');
      await subscription.take(4);
      await world.publish(topic, ...numbers(6));
      await subscription.take(6);
      await world.eventually(async () => {
        const permits = (await world.figures(topic)).permits['c'] ?? 0;
        return permits > 5 && permits <= 10;
      }, 'permits are granted again, to no more than 10');
    },
  },
  {
    title: '50,000 unacknowledged messages block a consumer until half of them are acknowledged',
    rules: ['S-12: 50,000 unacknowledged messages block a consumer; half of it unblocks'],
    needs: ['producer-batches'],
    realTime: { only: 'campaign', reason: 'publishes and holds 50,000 messages' },
    async run(world) {
      const topic = await world.newTopic();
      const batch = numbers(1_000);
      for (let i = 0; i < 51; i++) await world.publishBatch(topic, ...batch);
      const subscription = await world.subscribe(topic, { prefetch: 1_000 });
      const held = await subscription.take(50_000);
      await subscription.expectQuiet();
      await subscription.acknowledge(...held.slice(0, 24_000));
      await subscription.expectQuiet();
      await subscription.acknowledge(...held.slice(24_000, 26_000));
      await subscription.take(1_000);
    },
  },
];

const pauses: readonly ConformanceCase[] = [
  {
    title: 'a paused subscription gets nothing beyond what it was granted, and goes on when resumed',
    rules: ['S-10: without permits nothing is sent'],
    needs: ['flow-pause'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 4 });
      await world.publish(topic, ...numbers(12));
      await subscription.expectTexts('0');
      await world.elapse(100);
      subscription.port.pause();
      const granted = (await subscription.takeUntilQuiet()).length;
      expectTrue(granted <= 8, `at most twice the prefetch had been granted, got ${granted} after pause()`);
      subscription.port.resume();
      await subscription.take(11 - granted);
    },
  },
  {
    title: 'a subscription that is paused from the start gets nothing, and everything when resumed',
    rules: ['S-10: without permits nothing is sent'],
    needs: ['flow-pause'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 0 });
      subscription.port.pause();
      await world.publish(topic, 'a', 'b');
      await subscription.expectQuiet();
      subscription.port.resume();
      await subscription.expectTexts('a', 'b');
    },
  },
  {
    title: 'a paused consumer leaves the messages to the others',
    rules: ['S-10: without permits nothing is sent'],
    needs: ['flow-pause'],
    async run(world) {
      const topic = await world.newTopic();
      const paused = await world.subscribe(topic, { prefetch: 0 });
      const other = await world.subscribe(topic, { transport: await world.newTransport() });
      paused.port.pause();
      await world.publish(topic, ...numbers(10));
      await other.expectTexts(...numbers(10));
    },
  },
  {
    title: 'pausing and resuming again and again grants nothing twice',
    rules: ['S-11: permits count messages'],
    needs: ['flow-pause', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const { port } = await world.subscribe(topic, { prefetch: 10, consumerName: 'c' });
      for (let i = 0; i < 20; i++) {
        port.pause();
        port.resume();
      }
      await world.elapse(200);
      expectEqual((await world.figures(topic)).permits['c'], 10, 'permits');
    },
  },
];

const endings: readonly ConformanceCase[] = [
  {
    title: 'an aborted receive gives undefined and takes no message with it',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      await subscription.expectQuiet(50);
      await world.publish(topic, 'a', 'b');
      await subscription.expectTexts('a', 'b');
      expectEqual(await subscription.port.receive(AbortSignal.abort()), undefined, 'a receive that was aborted before');
    },
  },
  {
    title: 'a waiting receive gives undefined when the subscription closes',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const receiving = subscription.port.receive(new AbortController().signal);
      await subscription.close();
      expectEqual(await world.until(receiving, 'the end of receive'), undefined, 'what receive gave');
    },
  },
];

export const flowCases: readonly ConformanceCase[] = [...bounds, ...pauses, ...endings];
