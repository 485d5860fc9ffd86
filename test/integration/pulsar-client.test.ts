// The adapter for the official client against what is odd about it: each test fails when the defence it names is taken away.
// On the stand-in, and on the real package where its addon loads.
import { setTimeout as sleep } from 'node:timers/promises';
import type { SubscriptionState } from 'pulsework';
import { Runtime, defineHandler, fixedBackoff, retry, success } from 'pulsework';
import type { OfficialModule } from 'pulsework/pulsar';
import { pulsar as pulsarTransport } from 'pulsework/pulsar';
import { wire } from 'pulsework/wire';
import { describe, expect } from 'vitest';
import { SILENT, leftOn, message, numbers, publishAll, take } from '../support/pulsar-client-stand-in/message-kit.js';
import { eventually, textOf } from '../support/received.js';
import { realModule, specOf } from '../support/pulsar-client-stand-in/official-modules.js';
import { pulsarClientStandIn } from '../support/pulsar-client-stand-in/stand-in.js';
import { test } from '../support/real-pulsar/integration-test.js';

interface OfficialFixture {
  /** What the adapter is given as the official package. */
  readonly module: OfficialModule;
}

/** When a test ends, nothing has ended the process and no client is left open. */
const onStandIn = test.extend<OfficialFixture>({
  // oxlint-disable-next-line no-empty-pattern -- fixtures are recognised by the names that they take apart
  module: async ({}, use) => {
    const standIn = pulsarClientStandIn();
    await use(standIn.module);
    expect([standIn.violations, standIn.openClients()]).toEqual([[], 0]);
  },
});

/** Tests that look at the adapter alone: the same on either module. */
function adapterTests(test: typeof onStandIn): void {
  test('messages come in order, however many are ready at once (R2)', async ({ module, pulsar }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    await publishAll(
      await transport.publisher(topic),
      numbers(200).map((text) => message(text)),
    );
    expect((await take(subscription, 200)).map(textOf)).toEqual(numbers(200));
    await transport.close();
  });

  test('acknowledgements are sent before a close has ended, 500 of them (R1)', async ({ module, pulsar }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    await publishAll(
      await transport.publisher(topic),
      numbers(500).map((text) => message(text)),
    );
    const messages = await take(subscription, 500);
    for (const { id } of messages) void subscription.acknowledge([id]);
    await transport.close();
    expect(await leftOn(pulsar, topic, 0)).toEqual([]);
  });

  test('a publisher that closes waits for every receipt (R1)', async ({ module, pulsar }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    await (await transport.subscribe(specOf(topic))).close();
    const publisher = await transport.publisher(topic);
    const sending = publishAll(
      publisher,
      numbers(200).map((text) => message(text)),
    );
    await publisher.close();
    await sending;
    expect(await leftOn(pulsar, topic, 200)).toEqual(numbers(200));
    await transport.close();
  });

  test('more messages than the queue of the client takes are published in order (R3)', async ({ module, pulsar }) => {
    const { serviceUrl } = pulsar;
    const transport = pulsarTransport({ module, serviceUrl, maxPendingMessages: 10 });
    const topic = pulsar.newTopic();
    await (await transport.subscribe(specOf(topic))).close();
    const publisher = await transport.publisher(topic);
    const bytes = Buffer.from('000');
    const sending = numbers(100).map((text) => {
      bytes.write(text.padStart(3, '0'));
      return publisher.publish({ payload: bytes, properties: {} }, publisher.nextSequenceId());
    });
    await Promise.all(sending);
    expect(await leftOn(pulsar, topic, 100)).toEqual(numbers(100).map((text) => text.padStart(3, '0')));
    await transport.close();
  });

  test('a stream of redelivery requests closer together than the tick starves none (R4)', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    await publishAll(
      await transport.publisher(topic),
      numbers(250).map((text) => message(text)),
    );
    const messages = await take(subscription, 250);
    // Starved ones would come back only once the stream has ended.
    const first = take(subscription, 1);
    const back = { first: false };
    void first.then(() => (back.first = true));
    let asked = 0;
    for (const { id } of messages) {
      if (back.first) break;
      void subscription.redeliver([id]);
      asked += 1;
      await sleep(15);
    }
    const again = await Promise.race([first, sleep(0)]);
    expect(again?.map(({ redeliveryCount }) => redeliveryCount)).toEqual([1]);
    expect((await take(subscription, asked - 1)).length).toBe(asked - 1);
    await transport.close();
  });

  test('a loss of the connection is told, and what is unsettled comes again over the next one (R7)', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    const states: SubscriptionState[] = [];
    let lost: () => void = () => undefined;
    const isLost = new Promise<void>((resolve) => (lost = resolve));
    subscription.onState((state) => {
      states.push(state);
      if (state.state === 'lost') lost();
    });
    await publishAll(
      await transport.publisher(topic),
      ['a', 'b', 'c'].map((text) => message(text)),
    );
    const [a, b] = await take(subscription, 3);
    await subscription.acknowledge([b!.id]);
    // The official client sends acknowledgements late, and has no receipt for them.
    const backlog = async () => (await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog;
    expect(await eventually(backlog, (left) => left === 2)).toBe(2);
    await pulsar.admin.unload(topic);
    await isLost;
    // An acknowledgement now would be lost without a word.
    await expect(subscription.acknowledge([a!.id])).rejects.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
    await expect(subscription.redeliver([a!.id])).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    const again = await take(subscription, 2);
    expect(again.map((one) => [textOf(one), one.connection, one.redeliveryCount])).toEqual([
      ['a', 2, 0],
      ['c', 2, 0],
    ]);
    expect(states.map(({ state, connection }) => `${state} ${connection}`)).toEqual([
      'connected 1',
      'lost 1',
      'connected 2',
    ]);
    await transport.close();
  });

  test('properties are read whatever they are called, and what cannot be read is said (R11)', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const other = wire({ serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    const good = { constructor: 'c', '10': 'ten', '4294967294': 'far', length: '4294967295', map: 'm', '': 'none' };
    const publisher = await other.publisher(topic);
    await publisher.publish(message('good', { properties: good }), 0);
    await publisher.publish(message('bad', { properties: { length: 'abc', tenant: 'acme' } }), 1);
    const [read, unread] = await take(subscription, 2);
    expect({ ...read!.properties }).toEqual({
      constructor: 'c',
      '10': 'ten',
      '4294967294': 'far',
      map: 'm',
      '': 'none',
    });
    expect([textOf(unread!), { ...unread!.properties }]).toEqual(['bad', {}]);
    expect(unread!.unreadable).toContain('properties');
    await other.close();
    await transport.close();
  });

  test('a message whose properties cannot be read becomes a dead letter, and its neighbours go on (R11)', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const other = wire({ serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const seen: unknown[] = [];
    let done: () => void = () => undefined;
    const isDone = new Promise<void>((resolve) => (done = resolve));
    const handle = ({ payload }: { readonly payload: unknown }) => {
      seen.push(payload);
      done();
      return success();
    };
    const runtime = await Runtime.start({
      transport,
      logger: SILENT,
      handlers: [defineHandler({ name: 'h', source: topic, subscription: 's', handle })],
    });
    const publisher = await other.publisher(topic);
    await publisher.publish(message('"bad"', { properties: { length: 'abc' } }), 0);
    await publisher.publish(message('"good"'), 1);
    await isDone;
    const letters = await other.subscribe(specOf(`${topic}-s-DLQ`));
    const [letter] = await take(letters, 1);
    expect([textOf(letter!), letter!.properties['pulsework-cause'], seen]).toEqual(['"bad"', 'undecodable', ['good']]);
    await runtime.drain();
    await other.close();
    expect(await leftOn(pulsar, topic, 0)).toEqual([]);
  });

  test('a dead letter has a producer of its own, and its message stays until the receipt has come (R6)', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const other = wire({ serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const held = await other.client.publisher(`${topic}-s-DLQ`, { accessMode: 'exclusive' });
    let refused: (error: unknown) => void = () => undefined;
    const isRefused = new Promise<unknown>((resolve) => (refused = resolve));
    const error = (_: string, fields: { readonly error?: unknown } = {}): void => refused(fields.error);
    const runtime = await Runtime.start({
      transport,
      logger: { ...SILENT, error },
      handlers: [defineHandler({ name: 'h', source: topic, subscription: 's', handle: () => success() })],
    });
    await (await other.publisher(topic)).publish(message('no JSON'), 0);
    expect(await isRefused).toMatchObject({ code: 'PRODUCER_BUSY' });
    // Acknowledgements are sent within 100 ms.
    await sleep(250);
    expect((await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog).toBe(1);
    await held.close();
    expect((await take(await other.subscribe(specOf(`${topic}-s-DLQ`)), 1)).map(textOf)).toEqual(['no JSON']);
    await runtime.drain();
    await other.close();
    expect(await leftOn(pulsar, topic, 0)).toEqual([]);
  });

  test('a delivery time arrives too, and no trace of how it travelled (R4)', async ({ module, pulsar }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic, { type: 'exclusive' }));
    const deliverAtMs = Date.now() + 60_000;
    await (await transport.publisher(topic)).publish(message('a', { deliverAtMs, properties: { tenant: 'acme' } }), 0);
    const [received] = await take(subscription, 1);
    expect([received!.deliverAtMs, { ...received!.properties }]).toEqual([deliverAtMs, { tenant: 'acme' }]);
    await transport.close();
  });

  test('a subscription that is named when a publisher opens gets what is published, also when it is there and busy', async ({
    module,
    pulsar,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const first = await transport.publisher(topic, { initialSubscription: 's' });
    await first.publish(message('a'), 0);
    const holder = await transport.subscribe(specOf(topic, { type: 'exclusive' }));
    await (await transport.publisher(topic, { initialSubscription: 's' })).publish(message('b'), 0);
    expect((await take(holder, 2)).map(textOf)).toEqual(['a', 'b']);
    await transport.close();
  });

  test('a message of a batch is acknowledged alone, and one that was never here not at all (R8)', async ({
    module,
    pulsar,
    java,
  }) => {
    const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic();
    const subscription = await transport.subscribe(specOf(topic));
    const sent = ['a', 'b', 'c'].map((text) => ({ value: Buffer.from(text), properties: {} }));
    await java.produce(pulsar.serviceUrl, topic, sent, { batching: 'on' });
    const [a, b] = await take(subscription, 3);
    await subscription.acknowledge([b!.id]);
    const unknown = { ...a!.id, entryId: a!.id.entryId + 7 };
    await expect(subscription.acknowledge([a!.id, unknown])).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await transport.close();
    expect(await leftOn(pulsar, topic, 2)).toEqual(['a', 'c']);
  });

  for (const type of ['key-shared', 'exclusive'] as const) {
    test(`${type}: a failing key waits in this process, and the client is asked for nothing (R9, R10)`, async ({
      module,
      pulsar,
    }) => {
      const transport = pulsarTransport({ module, serviceUrl: pulsar.serviceUrl });
      const topic = pulsar.newTopic();
      const runs: string[] = [];
      let done: () => void = () => undefined;
      const isDone = new Promise<void>((resolve) => (done = resolve));
      const redelivery = { maxDeliveries: 5, backoff: fixedBackoff(100) };
      const runtime = await Runtime.start({
        transport,
        logger: SILENT,
        handlers: [
          defineHandler({
            name: 'h',
            source: topic,
            subscription: 's',
            type,
            ordering: 'key',
            redelivery,
            handle: ({ payload, attempt, redeliveryCount }) => {
              runs.push(`${String(payload)}:${attempt}:${redeliveryCount}`);
              if (payload === 0 && attempt < 3) return retry();
              if (payload === 2) done();
              return success();
            },
          }),
        ],
      });
      const publisher = await transport.publisher(topic);
      await publishAll(
        publisher,
        numbers(3).map((text) => message(text, { key: 'k' })),
      );
      await isDone;
      await runtime.drain();
      expect(runs).toEqual(['0:1:0', '0:2:0', '0:3:0', '1:1:0', '2:1:0']);
    });
  }
}

describe.concurrent('pulsar, on the stand-in', () => adapterTests(onStandIn));

const real = realModule;
if (typeof real === 'string') {
  test('the same on the real addon', ({ skip }) => skip(real));
} else {
  describe.concurrent('pulsar, on the real addon', () => adapterTests(test.extend<OfficialFixture>({ module: real })));
}
