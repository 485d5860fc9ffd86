// Who may publish to a topic beside a publisher that wants it for itself: who is refused, who waits in line, whom fencing
// shuts out.
import type { AccessMode } from '../../core/access-mode.js';
import type { Publisher } from '../../ports/transport.js';
import type { ConformanceCase, ConformanceRule } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { expectEqual, expectRefused, expectTrue, textsOf } from './expectations.js';

/** So long nothing may happen. Brokers answer in a few milliseconds. */
const QUIET_MS = 300;

const ALONE: ConformanceRule = 'G-14: who wants a topic for itself is refused while anybody else publishes to it';
const LINE: ConformanceRule =
  'G-14: who waits for exclusive access waits in line, without a limit, also over an unload';
const FENCING: ConformanceRule = 'G-14: fencing ends the owner and the line for good, shared producers it cuts off';

/** Each from a client of its own, as from another process. */
async function open(world: ConformanceWorld, topic: string, mode: AccessMode): Promise<Publisher> {
  return world.until(world.publisherAs(topic, mode), `a publisher that is ${mode}`);
}

function publish(publisher: Publisher, text: string): Promise<unknown> {
  const message = { payload: new TextEncoder().encode(text), properties: {} };
  return publisher.publish(message, publisher.nextSequenceId());
}

/** Whether it waits, and is not refused. */
async function expectWaiting(world: ConformanceWorld, opening: Promise<Publisher>, who: string): Promise<void> {
  // Looked at later, or not at all when the case has failed before.
  opening.catch(() => undefined);
  expectTrue(!(await world.comes(opening, QUIET_MS)), `${who} must wait in line`);
}

async function expectStored(world: ConformanceWorld, topic: string, texts: readonly string[]): Promise<void> {
  const subscription = await world.subscribe(topic);
  expectEqual(textsOf(await subscription.take(texts.length)), texts, 'what is stored');
  await subscription.expectQuiet();
}

const refusals: readonly ConformanceCase[] = [
  {
    title:
      'a publisher that wants the topic for itself is refused beside a shared one, and has it once that has closed',
    rules: [ALONE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const shared = await open(world, topic, 'shared');
      await expectRefused(open(world, topic, 'exclusive'), 'PRODUCER_FENCED', 'beside a shared one');
      await world.until(publish(shared, 'a'), 'the receipt of who was there');
      await shared.close();
      const owner = await open(world, topic, 'exclusive');
      await world.until(publish(owner, 'b'), 'the receipt of the owner');
      await expectRefused(open(world, topic, 'exclusive'), 'PRODUCER_FENCED', 'beside another that has it');
      await owner.close();
      await open(world, topic, 'exclusive');
      await expectStored(world, topic, ['a', 'b']);
    },
  },
  {
    title: 'a shared publisher is not let in while another has the topic for itself, and is once that has closed',
    rules: [ALONE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const owner = await open(world, topic, 'exclusive');
      // A client may ask again for some time before it gives the refusal on.
      const early = world.publisherAs(topic, 'shared');
      early.catch(() => undefined);
      if (await world.comes(early, QUIET_MS)) await expectRefused(early, 'PRODUCER_BUSY', 'beside the owner');
      await owner.close();
      await world.until(publish(await open(world, topic, 'shared'), 'a'), 'the receipt');
    },
  },
  {
    title: 'on a partitioned topic a publisher has all partitions for itself, or is refused',
    rules: [ALONE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic(3);
      const ofOne = await open(world, `${topic}-partition-1`, 'shared');
      await expectRefused(open(world, topic, 'exclusive'), 'PRODUCER_FENCED', 'beside a shared one on one partition');
      await ofOne.close();
      const owner = await open(world, topic, 'exclusive');
      for (const partition of [0, 1, 2]) {
        const other = open(world, `${topic}-partition-${partition}`, 'exclusive');
        await expectRefused(other, 'PRODUCER_FENCED', `partition ${partition}`);
      }
      await world.until(publish(owner, 'a'), 'the receipt of the owner');
    },
  },
];

const lines: readonly ConformanceCase[] = [
  {
    title: 'who waits for the topic where nobody is has it at once',
    rules: [LINE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const owner = await open(world, topic, 'wait-for-exclusive');
      await world.until(publish(owner, 'a'), 'the receipt');
      await expectRefused(open(world, topic, 'exclusive'), 'PRODUCER_FENCED', 'beside who waited for it');
    },
  },
  {
    title: 'those who wait for the topic have it one after the other, who came first first',
    rules: [LINE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const shared = await open(world, topic, 'shared');
      const first = world.publisherAs(topic, 'wait-for-exclusive');
      await expectWaiting(world, first, 'the first');
      const second = world.publisherAs(topic, 'wait-for-exclusive');
      await expectWaiting(world, second, 'the second');
      await expectRefused(open(world, topic, 'exclusive'), 'PRODUCER_FENCED', 'past those in line');
      await shared.close();
      const owner = await world.until(first, 'the turn of the first');
      await world.until(publish(owner, 'a'), 'the receipt of the first');
      await expectWaiting(world, second, 'the second, while the first has it,');
      await owner.close();
      const next = await world.until(second, 'the turn of the second');
      await world.until(publish(next, 'b'), 'the receipt of the second');
      await expectStored(world, topic, ['a', 'b']);
    },
  },
  {
    title: 'who left the line is passed over',
    rules: [LINE],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const owner = await open(world, topic, 'exclusive');
      const transport = await world.newTransport();
      const leaving = world.publisherAs(topic, 'wait-for-exclusive', transport);
      await expectWaiting(world, leaving, 'the first');
      const second = world.publisherAs(topic, 'wait-for-exclusive');
      await expectWaiting(world, second, 'the second');
      await world.until(transport.close(), 'closing a transport that waits');
      await expectRefused(world.until(leaving, 'the end of the wait'), 'ALREADY_CLOSED', 'who was closed in line');
      await owner.close();
      await world.until(publish(await world.until(second, 'the turn of the second'), 'a'), 'the receipt');
    },
  },
  {
    title: 'over an unload the owner keeps the topic and who waits for it waits on',
    rules: [LINE],
    needs: ['access-modes', 'unload'],
    realTime: {
      only: 'never',
      reason:
        'Pulsar 4.0.7 gives the topic to whoever comes back first, and shuts the owner out when that is who waited',
    },
    async run(world) {
      const topic = await world.newTopic();
      const owner = await open(world, topic, 'exclusive');
      const waiting = world.publisherAs(topic, 'wait-for-exclusive');
      await expectWaiting(world, waiting, 'another');
      await world.unload(topic);
      await world.until(publish(owner, 'a'), 'the receipt after the unload');
      await expectWaiting(world, waiting, 'another, after the unload,');
      await owner.close();
      await world.until(publish(await world.until(waiting, 'its turn'), 'b'), 'the receipt of who waited');
      await expectStored(world, topic, ['a', 'b']);
    },
  },
];

const fencing: readonly ConformanceCase[] = [
  {
    title: 'fencing shuts out the owner and who waits in line, for good',
    rules: [FENCING],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const owner = await open(world, topic, 'exclusive');
      await world.until(publish(owner, 'a'), 'the receipt of the owner');
      const waiting = world.publisherAs(topic, 'wait-for-exclusive');
      await expectWaiting(world, waiting, 'another');
      const newer = await open(world, topic, 'exclusive-with-fencing');
      await expectRefused(world.until(publish(owner, 'lost'), 'a refusal'), 'PRODUCER_FENCED', 'the owner');
      await expectRefused(world.until(waiting, 'the end of the wait'), 'PRODUCER_FENCED', 'who waited');
      await world.until(publish(newer, 'b'), 'the receipt of the newer one');
      await newer.close();
      await expectRefused(world.until(publish(owner, 'lost'), 'a refusal'), 'PRODUCER_FENCED', 'the owner of before');
      await world.until(publish(await open(world, topic, 'shared'), 'c'), 'the receipt of another');
      await expectStored(world, topic, ['a', 'b', 'c']);
    },
  },
  {
    title: 'a fencing publisher shuts out one that fenced before it',
    rules: [FENCING],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await open(world, topic, 'exclusive-with-fencing');
      const second = await open(world, topic, 'exclusive-with-fencing');
      await expectRefused(world.until(publish(first, 'lost'), 'a refusal'), 'PRODUCER_FENCED', 'the first');
      await world.until(publish(second, 'a'), 'the receipt of the second');
      await expectStored(world, topic, ['a']);
    },
  },
  {
    title: 'a shared publisher that fencing cut off stores nothing until the topic is free',
    rules: [FENCING],
    needs: ['access-modes'],
    async run(world) {
      const topic = await world.newTopic();
      const shared = await open(world, topic, 'shared');
      await world.until(publish(shared, 'a'), 'the receipt of the shared one');
      const owner = await open(world, topic, 'exclusive-with-fencing');
      // A client may ask again for some time before it gives the refusal on.
      const early = publish(shared, 'b');
      early.catch(() => undefined);
      const isAnswered = await world.comes(early, QUIET_MS);
      if (isAnswered) await expectRefused(early, 'PRODUCER_BUSY', 'beside the owner');
      await world.until(publish(owner, 'c'), 'the receipt of the owner');
      await owner.close();
      if (isAnswered) await world.until(publish(shared, 'b'), 'the receipt once the topic is free');
      else await world.until(early, 'the receipt once the topic is free');
      await expectStored(world, topic, ['a', 'c', 'b']);
    },
  },
];

export const accessModeCases: readonly ConformanceCase[] = [...refusals, ...lines, ...fencing];
