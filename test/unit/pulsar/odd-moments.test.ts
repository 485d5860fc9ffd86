// The adapter at moments that a real client passes by: arrivals while the connection is not what it was, seeks that fail,
// closes that meet other calls.
import type { Outcome, SubscriptionState } from 'pulsework';
import { Runtime, defineHandler, fixedBackoff, retry, success } from 'pulsework';
import { pulsar } from 'pulsework/pulsar';
import { FakeClock } from 'pulsework/testing';
import { expect, it, onTestFinished } from 'vitest';
import { LOOK_INTERVAL_MS } from '../../../src/transports/pulsar/pulsar-subscription.js';
import { SILENT, message } from '../../support/pulsar-client-stand-in/message-kit.js';
import { specOf } from '../../support/pulsar-client-stand-in/official-modules.js';
import { ScriptedClient, moduleMaking, turn } from '../../support/pulsar-client-stand-in/scripted-client.js';
import { textOf } from '../../support/received.js';

const TOPIC = 'persistent://public/default/t';
const forever = new AbortController().signal;

function world() {
  const client = new ScriptedClient();
  const clock = new FakeClock();
  const transport = pulsar({ serviceUrl: 'pulsar://localhost:6650', module: moduleMaking(client), clock });
  onTestFinished(async () => {
    client.letGo();
    await transport.close();
  });
  return { client, clock, transport };
}

async function subscribed() {
  const { client, clock, transport } = world();
  const subscription = await transport.subscribe(specOf(TOPIC));
  const states: string[] = [];
  subscription.onState(({ state, connection }: SubscriptionState) => void states.push(`${state} ${connection}`));
  const take = async (): Promise<string> => {
    const received = await subscription.receive(forever);
    return received === undefined ? 'the end' : `${textOf(received)} ${received.connection}`;
  };
  return { client, consumer: client.consumers[0]!, clock, transport, subscription, states, take };
}

type OutcomeOf = (payload: unknown, attempt: number) => Outcome | Promise<Outcome>;

async function running(outcomeOf: OutcomeOf = () => success(), concurrency = 1) {
  const { client, clock, transport } = world();
  const runs: unknown[] = [];
  const handler = defineHandler({
    name: 'h',
    source: TOPIC,
    subscription: 's',
    concurrency,
    redelivery: { maxDeliveries: 9, backoff: fixedBackoff(10) },
    handle: ({ payload, attempt }) => {
      runs.push(attempt === 1 ? payload : `${String(payload)}:${attempt}`);
      return outcomeOf(payload, attempt);
    },
  });
  const starting = Runtime.start({ transport, clock, logger: SILENT, handlers: [handler] });
  await turn();
  await clock.advanceBy(0);
  const runtime = await starting;
  return { client, clock, runs, runtime, consumer: client.consumers.find(({ config }) => config.topic === TOPIC)! };
}

it('a message is asked for only while a slot is free: another consumer may take what lies in the broker (R2)', async () => {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const { client, consumer, runs, runtime } = await running(() => ended.then(() => success()));
  await consumer.deliver(1, '1');
  expect([runs, consumer.receives.open.length]).toEqual([[1], 0]);
  end();
  await turn();
  expect(consumer.receives.open).toHaveLength(1);
  client.letGo();
  await runtime.drain();
});

it('attempts go on where the broker forgot its count, and follow it where it knows more (R5)', async () => {
  const { client, clock, consumer, runs, runtime } = await running((_, attempt) => (attempt < 2 ? retry() : success()));
  await consumer.deliver(1, '1');
  consumer.connected = false;
  await clock.advanceBy(LOOK_INTERVAL_MS);
  consumer.connected = true;
  await consumer.deliver(1, '1');
  await consumer.deliver(2, '2', 3);
  expect(runs).toEqual([1, '1:2', '2:4']);
  client.letGo();
  await runtime.drain();
});

it('what comes over the next connection before that is looked at belongs to it, and runs (R7)', async () => {
  const { client, clock, consumer, runs, runtime } = await running();
  consumer.connected = false;
  await clock.advanceBy(LOOK_INTERVAL_MS);
  consumer.connected = true;
  await consumer.deliver(1, '1');
  expect(runs).toEqual([1]);
  expect(consumer.acknowledged).toEqual(['(1,1,-1,-1)']);
  client.letGo();
  await runtime.drain();
});

it('a copy that comes while its message runs does not run beside it, and is settled with it (R7)', async () => {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const { client, clock, consumer, runs, runtime } = await running(() => ended.then(() => success()), 2);
  await consumer.deliver(1, '1');
  consumer.connected = false;
  await clock.advanceBy(LOOK_INTERVAL_MS);
  consumer.connected = true;
  await consumer.deliver(1, '1');
  end();
  await turn();
  expect([runs, consumer.acknowledged]).toEqual([[1], ['(1,1,-1,-1)']]);
  client.letGo();
  await runtime.drain();
});

it('what comes while the connection is lost is not handed on: it comes again (R7)', async () => {
  const { consumer, states, take } = await subscribed();
  const taking = take();
  await turn();
  consumer.connected = false;
  await consumer.deliver(1, 'a');
  consumer.connected = true;
  await consumer.deliver(1, 'a');
  expect([await taking, states]).toEqual(['a 2', ['connected 1', 'lost 1', 'connected 2']]);
});

it('a request for redelivery is dropped when its copy comes or its connection is lost (R7)', async () => {
  const { consumer, clock, subscription, take } = await subscribed();
  const ids: Parameters<typeof subscription.redeliver>[0][number][] = [];
  for (const entry of [1, 2, 3, 4]) {
    const taking = subscription.receive(forever);
    await turn();
    await consumer.deliver(entry, String(entry));
    ids.push((await taking)!.id);
  }
  const asked = subscription.redeliver([ids[0]!, ids[1]!, ids[2]!]);
  const again = take();
  await turn();
  await consumer.deliver(1, 'again');
  await subscription.acknowledge([ids[1]!]);
  await clock.advanceBy(0);
  await asked;
  expect([await again, consumer.nacked]).toEqual(['again 1', ['(1,3,-1,-1)']]);
  const late = subscription.redeliver([ids[3]!]);
  consumer.connected = false;
  await clock.advanceBy(LOOK_INTERVAL_MS);
  consumer.connected = true;
  await clock.advanceBy(1_000);
  await late;
  expect(consumer.nacked).toEqual(['(1,3,-1,-1)']);
});

it('what did not come again over a whole connection is not asked for: another consumer has it', async () => {
  const { consumer, clock, subscription } = await subscribed();
  const taking = subscription.receive(forever);
  await turn();
  await consumer.deliver(1, 'elsewhere');
  const { id } = (await taking)!;
  for (const connected of [false, true, false, true]) {
    consumer.connected = connected;
    await clock.advanceBy(LOOK_INTERVAL_MS);
  }
  const asked = subscription.redeliver([id]);
  await clock.advanceBy(1_000);
  await asked;
  expect(consumer.nacked).toEqual([]);
});

it('an acknowledgement that the client refuses settles nothing: it can be repeated, or the message asked back', async () => {
  const { consumer, clock, subscription } = await subscribed();
  const ids: Parameters<typeof subscription.redeliver>[0][number][] = [];
  for (const entry of [1, 2]) {
    const taking = subscription.receive(forever);
    await turn();
    await consumer.deliver(entry, String(entry));
    ids.push((await taking)!.id);
  }
  const takes = consumer.acknowledgeId.bind(consumer);
  consumer.acknowledgeId = () => Promise.reject(new Error('Failed to acknowledge: Disconnected'));
  await expect(subscription.acknowledge(ids)).rejects.toThrow('acknowledging on');
  consumer.acknowledgeId = takes;
  await subscription.acknowledge([ids[0]!]);
  const asked = subscription.redeliver(ids);
  await clock.advanceBy(0);
  await asked;
  expect([consumer.acknowledged, consumer.nacked]).toEqual([['(1,1,-1,-1)'], ['(1,2,-1,-1)']]);
});

it('a copy that comes while its message is being acknowledged is not taken for settled', async () => {
  const { consumer, clock, subscription } = await subscribed();
  const taking = subscription.receive(forever);
  await turn();
  await consumer.deliver(1, 'a');
  const { id } = (await taking)!;
  let taken: () => void = () => undefined;
  consumer.acknowledgeId = () => new Promise((resolve) => (taken = () => resolve(null)));
  const acknowledging = subscription.acknowledge([id]);
  const again = subscription.receive(forever);
  await turn();
  await consumer.deliver(1, 'a');
  await again;
  taken();
  await acknowledging;
  const asked = subscription.redeliver([id]);
  await clock.advanceBy(0);
  await asked;
  expect(consumer.nacked).toEqual(['(1,1,-1,-1)']);
});

it('what comes while a seek is under way belongs to the connection after it: the broker sends it once', async () => {
  const { consumer, subscription, states, take } = await subscribed();
  const taking = take();
  const seeking = subscription.seek('earliest');
  await turn();
  await consumer.deliver(1, 'a');
  states.push('a came');
  consumer.seeks.open[0]!.resolve(null);
  await seeking;
  expect([await taking, states]).toEqual(['a 2', ['connected 1', 'a came', 'lost 1', 'connected 2']]);
});

it('what came before the connection was lost for a seek is not handed on after it', async () => {
  const { consumer, clock, subscription, take } = await subscribed();
  const taking = take();
  const seeking = subscription.seek('latest');
  await turn();
  await consumer.deliver(1, 'before');
  consumer.connected = false;
  await clock.advanceBy(LOOK_INTERVAL_MS);
  consumer.connected = true;
  await consumer.deliver(2, 'after');
  consumer.seeks.open[0]!.resolve(null);
  await seeking;
  expect(await taking).toBe('after 2');
});

it('a seek that fails leaves everything as it was', async () => {
  const { consumer, clock, subscription, states, take } = await subscribed();
  const taking = subscription.receive(forever);
  await turn();
  await consumer.deliver(1, 'taken');
  const { id } = (await taking)!;
  await subscription.receive(AbortSignal.abort());
  const ended = new AbortController();
  const waiting = subscription.receive(ended.signal);
  await turn();
  ended.abort();
  await waiting;
  await consumer.deliver(2, 'queued');
  const seeking = subscription.seek('earliest');
  await turn();
  consumer.seeks.open[0]!.reject(new Error('Failed to seek message by id: TimeOut'));
  await expect(seeking).rejects.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
  expect(await take()).toBe('queued 1');
  const asked = subscription.redeliver([id]);
  await clock.advanceBy(0);
  await asked;
  expect([consumer.nacked, states]).toEqual([['(1,1,-1,-1)'], ['connected 1']]);
});

it('seeks go to the client one at a time: it refuses a second one beside the first', async () => {
  const { consumer, subscription } = await subscribed();
  const seeks = Promise.allSettled([subscription.seek('earliest'), subscription.seek('latest')]);
  await turn();
  expect(consumer.seeks.open).toHaveLength(1);
  consumer.seeks.open[0]!.reject(new Error('Failed to seek message by id: TimeOut'));
  await turn();
  consumer.seeks.open[1]!.resolve(null);
  expect((await seeks).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
});

it('the client closes only when every consumer and producer has, whoever closes them first (R1)', async () => {
  const { client, consumer, transport, subscription } = await subscribed();
  const publisher = await transport.publisher(TOPIC);
  const producer = client.producers[0]!;
  const closing = [subscription.close(), subscription.close(), publisher.close(), transport.close(), transport.close()];
  await turn();
  producer.flushes.open[0]!.resolve(null);
  await turn();
  expect([consumer, producer, client].map(({ closes }) => closes.open.length)).toEqual([1, 1, 0]);
  producer.closes.open[0]!.resolve(null);
  await turn();
  expect(client.closes.open).toEqual([]);
  consumer.closes.open[0]!.resolve(null);
  await turn();
  client.closes.open[0]!.resolve(null);
  await Promise.all(closing);
  expect(client.closes.open).toHaveLength(1);
});

it('what was being opened when the transport closed is closed, and refused (R1)', async () => {
  const client = new ScriptedClient();
  const transport = pulsar({ client, module: moduleMaking(client), clock: new FakeClock() });
  let open: () => void = () => undefined;
  client.opens = new Promise<void>((resolve) => (open = resolve));
  const opening = [transport.subscribe(specOf(TOPIC)), transport.publisher(TOPIC)];
  const codes = opening.map((one) => one.catch((error: unknown) => (error as { readonly code: string }).code));
  await turn();
  await transport.close();
  open();
  await turn();
  client.producers[0]!.flushes.open[0]!.resolve(null);
  await turn();
  for (const { closes } of [client.consumers[0]!, client.producers[0]!]) closes.open[0]!.resolve(null);
  expect(await Promise.all(codes)).toEqual(['ALREADY_CLOSED', 'ALREADY_CLOSED']);
});

it('a close ends what waits, and nothing that comes later is handed on or acknowledged (R2)', async () => {
  const { consumer, subscription, take } = await subscribed();
  const taking = take();
  await turn();
  const closing = subscription.close();
  await consumer.deliver(1, 'late');
  consumer.closes.open[0]!.resolve(null);
  await closing;
  expect([await taking, await take(), consumer.acknowledged]).toEqual(['the end', 'the end', []]);
  const id = { ledgerId: 1, entryId: 1, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC };
  for (const call of [subscription.acknowledge([id]), subscription.redeliver([id]), subscription.seek('earliest')])
    await expect(call).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
});

it('a producer closes also when flushing it fails (R1)', async () => {
  const { client, transport } = world();
  const publisher = await transport.publisher(TOPIC);
  const closing = publisher.close();
  await turn();
  client.producers[0]!.flushes.open[0]!.reject(new Error('Failed to flush producer: TimeOut'));
  await turn();
  client.producers[0]!.closes.open[0]!.resolve(null);
  await expect(closing).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
});

it('a send that throws at once keeps nobody waiting for its place (R3)', async () => {
  const client = new ScriptedClient();
  const transport = pulsar({ client, module: moduleMaking(client), clock: new FakeClock(), maxPendingMessages: 1 });
  const publisher = await transport.publisher(TOPIC);
  const producer = client.producers[0]!;
  const sending = ['a', 'b', 'c'].map((text, i) => publisher.publish(message(text), i));
  const settled = Promise.allSettled(sending);
  await turn();
  producer.throwsNext = new Error('Illegal invocation');
  producer.sends.open[0]!.reject(new Error('Failed to send message: TimeOut'));
  await turn();
  producer.sends.open[1]!.reject(new Error('Failed to send message: MessageTooBig'));
  const codes = (await settled).map((one) => (one as PromiseRejectedResult).reason as { readonly code: string });
  expect(codes.map(({ code }) => code)).toEqual(['CALL_TIMED_OUT', 'BROKER_ERROR', 'MESSAGE_TOO_LARGE']);
});

it('a prefetch beyond 32 bits is not cut to a queue of 0, which would never deliver the rest of a batch (R3)', async () => {
  const { client, transport } = world();
  await transport.subscribe(specOf(TOPIC, { prefetch: 2 ** 32 }));
  expect(client.consumers[0]!.config.receiverQueueSize).toBe(2 ** 31 - 1);
});

it.each([undefined, 5, [null], ['b']])('what is no list of message ids (%j) is refused by name', async (wrong) => {
  const { subscription } = await subscribed();
  const refused = { code: 'MESSAGE_ID_INVALID' };
  await expect(subscription.acknowledge(wrong as never)).rejects.toMatchObject(refused);
  await expect(subscription.redeliver(wrong as never)).rejects.toMatchObject(refused);
});

it('a receive without a signal is refused by name', async () => {
  const { subscription } = await subscribed();
  await expect(subscription.receive(undefined as never)).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
});
