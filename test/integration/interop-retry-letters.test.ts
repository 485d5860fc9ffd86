// Retry letters between this runtime and the Java client, both ways: what a letter says, that the other side goes on with
// its count, and that the first origin stays to the end. docs/interop.md lists what each test here shows.
import { afterEach, expect } from 'vitest';
import {
  Runtime,
  bytesCodec,
  consoleLogger,
  defineHandler,
  fixedBackoff,
  poison,
  retry,
  retryAfter,
  success,
  topic,
} from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { wire } from 'pulsework/wire';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerMessage, PeerReceived } from '../support/real-pulsar/pulsar-peer.js';

const runtimes: Runtime[] = [];
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.drain();
});

/** A subscription `s` of this runtime that waits `delayMs` after a failure; with `maxHeld` 1 its second wait is a letter. */
async function handle(
  pulsar: SharedPulsar,
  name: string,
  outcome: (delivery: Delivery) => Outcome,
  delayMs = 200,
): Promise<Runtime> {
  const handler = defineHandler({
    name: 'kitchen',
    source: topic(name, { codec: bytesCodec }),
    subscription: 's',
    retryTopic: true,
    maxHeld: 1,
    redelivery: { maxDeliveries: 3, backoff: fixedBackoff(delayMs) },
    handle: outcome,
  });
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  const logger = consoleLogger({ level: 'silent' });
  const runtime = await Runtime.start({ transport, handlers: [handler], logger });
  runtimes.push(runtime);
  return runtime;
}

const ORIGINAL: PeerMessage = {
  value: 'ünïcödé',
  key: 'ключ',
  properties: { tenant: 'acme', ä: '日本' },
  eventTimeMs: 1_234_567_890_123,
};
const HOLDER: PeerMessage = { value: 'takes the one place to hold something' };

/** The first message holds the only place, so the second one goes to the retry letter topic. */
const failing = ({ payload }: Delivery): Outcome =>
  String(payload) === HOLDER.value ? retryAfter(50_000) : retry('not yet');

const partsOf = ({ value, key, eventTimeMs }: PeerReceived) => ({ value: String(value), key, eventTimeMs });
const parts = { value: ORIGINAL.value, key: ORIGINAL.key, eventTimeMs: ORIGINAL.eventTimeMs };

test('Java reads a retry letter of this runtime: how often, how long, and where it came from', async ({
  pulsar,
  java,
}) => {
  const name = pulsar.newTopic();
  const letters = await java.subscribe(pulsar.serviceUrl, `${name}-s-RETRY`, { subscription: 'desk' });
  await handle(pulsar, name, failing);
  await java.produce(pulsar.serviceUrl, name, [HOLDER]);
  await expect.poll(() => runtimes[0]?.health()[0]?.held, { timeout: 20_000 }).toBe(1);

  const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);

  // Exclusive: the letters come when they are published, not when they are due.
  const received = await letters.receive(2);
  expect(received.map(partsOf)).toEqual([parts, parts]);
  for (const [index, { properties }] of received.entries()) {
    expect(properties).toEqual({
      ...ORIGINAL.properties,
      RECONSUMETIMES: String(index + 1),
      DELAY_TIME: '200',
      REAL_TOPIC: name,
      ORIGIN_MESSAGE_ID: sent?.id,
      'pulsework-attempt': String(index + 1),
      'pulsework-republished': String(index + 1),
      'pulsework-not-before': expect.stringMatching(/^\d+$/),
      'pulsework-first-failure-time': expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
  }
});

test('Java goes on with a retry letter of this runtime until its own policy ends it, and the origin stays', async ({
  pulsar,
  java,
}) => {
  const name = pulsar.newTopic();
  const desk = await java.subscribe(pulsar.serviceUrl, `${name}-s-RETRY`, { subscription: 'desk' });
  const dead = await java.subscribe(pulsar.serviceUrl, `${name}-s-DLQ`, { subscription: 'desk' });
  const runtime = await handle(pulsar, name, failing, 8_000);
  await java.produce(pulsar.serviceUrl, name, [HOLDER]);
  await expect.poll(() => runtime.health()[0]?.held, { timeout: 20_000 }).toBe(1);
  const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);
  await desk.receive(1);
  // It is not due for a while: Java takes it over.
  await runtime.drain();

  const consumer = await java.subscribe(pulsar.serviceUrl, name, {
    subscription: 's',
    type: 'shared',
    enableRetry: true,
    deadLetter: { maxRedeliverCount: 2 },
  });
  const counts: (string | undefined)[] = [];
  for (let letter = 1; letter <= 2; letter++) {
    const message = await nextOriginal(consumer.receive.bind(consumer));
    counts.push(message.properties['RECONSUMETIMES']);
    await consumer.reconsumeLater([message], 100);
  }
  const [end] = await dead.receive(1);
  await consumer.close();

  expect(counts).toEqual(['1', '2']);
  expect(end && partsOf(end)).toEqual(parts);
  expect(end?.properties).toMatchObject({
    ...ORIGINAL.properties,
    RECONSUMETIMES: '3',
    REAL_TOPIC: name,
    ORIGIN_MESSAGE_ID: sent?.id,
  });
});

test('a retry letter of Java goes on here with its count and the original properties, and dies with its origin', async ({
  pulsar,
  java,
}) => {
  const name = pulsar.newTopic();
  const dead = await java.subscribe(pulsar.serviceUrl, `${name}-s-DLQ`, { subscription: 'desk' });
  const desk = await java.subscribe(pulsar.serviceUrl, `${name}-s-RETRY`, { subscription: 'desk' });
  const consumer = await java.subscribe(pulsar.serviceUrl, name, {
    subscription: 's',
    type: 'shared',
    enableRetry: true,
    deadLetter: { maxRedeliverCount: 16 },
  });
  const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);
  await consumer.reconsumeLater(await consumer.receive(1), 3_000);
  await consumer.close();
  const [letter] = await desk.receive(1);

  const seen: Pick<Delivery, 'attempt' | 'originId' | 'topic'>[] = [];
  const properties: object[] = [];
  await handle(pulsar, name, (delivery) => {
    const { attempt, originId, topic: from } = delivery;
    seen.push({ attempt, originId, topic: from });
    properties.push({ ...delivery.properties });
    return retry('never');
  });
  const [end] = await dead.receive(1);

  expect(letter?.properties['RECONSUMETIMES']).toBe('1');
  const { ORIGIN_MESSAGE_ID, REAL_TOPIC } = letter?.properties ?? {};
  expect([ORIGIN_MESSAGE_ID, REAL_TOPIC]).toEqual([sent?.id, name]);
  expect(seen).toEqual([2, 3].map((attempt) => ({ attempt, originId: sent?.id, topic: name })));
  expect(properties).toEqual([ORIGINAL.properties, ORIGINAL.properties]);
  expect(end && partsOf(end)).toEqual(parts);
  expect(end?.properties).toMatchObject({ REAL_TOPIC, ORIGIN_MESSAGE_ID, 'pulsework-attempt': '3' });
});

test('a dead letter that Java made after its retry letters is read here, as a message like any other', async ({
  pulsar,
  java,
}) => {
  const name = pulsar.newTopic();
  const letters = `${name}-s-DLQ`;
  const again = await java.subscribe(pulsar.serviceUrl, `${letters}-s-DLQ`, { subscription: 'desk' });
  const here: Delivery[] = [];
  await handle(pulsar, letters, (delivery) => {
    here.push(delivery);
    return here.length === 1 ? poison('still bad') : success();
  });
  const consumer = await java.subscribe(pulsar.serviceUrl, name, {
    subscription: 's',
    type: 'shared',
    enableRetry: true,
    deadLetter: { maxRedeliverCount: 1 },
  });
  const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);
  for (let delivery = 1; delivery <= 2; delivery++) await consumer.reconsumeLater(await consumer.receive(1), 100);
  const [end] = await again.receive(1);
  await consumer.close();

  const origin = { REAL_TOPIC: name, ORIGIN_MESSAGE_ID: sent?.id, RECONSUMETIMES: '2' };
  const [delivery] = here;
  expect([String(delivery?.payload), delivery?.key, delivery?.attempt]).toEqual([ORIGINAL.value, ORIGINAL.key, 1]);
  expect(delivery?.properties).toMatchObject({ ...ORIGINAL.properties, ...origin });
  expect(end?.properties).toMatchObject({ ...ORIGINAL.properties, ...origin, 'pulsework-cause': 'poison' });
});

/** The next message that is not the one that held the place. */
async function nextOriginal(receive: (count: number) => Promise<readonly PeerReceived[]>): Promise<PeerReceived> {
  for (;;) {
    const [message] = await receive(1);
    if (message === undefined) throw new Error('no message came');
    if (String(message.value) !== HOLDER.value) return message;
  }
}
