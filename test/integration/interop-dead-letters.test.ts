// Dead letters between this runtime and other clients, both ways: the copy, where it came from and why, and that the
// first origin stays when a dead letter dies again. docs/interop.md lists what each test here shows.
import { afterEach, expect } from 'vitest';
import { Runtime, bytesCodec, consoleLogger, defineHandler, poison, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { wire } from 'pulsework/wire';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerMessage, PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';

const runtimes: Runtime[] = [];
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.drain();
});

/** A subscription `s` of this runtime whose handler ends as `outcome` says. */
async function handle(pulsar: SharedPulsar, name: string, outcome: (delivery: Delivery) => Outcome): Promise<void> {
  const handler = defineHandler({
    name: 'kitchen',
    source: topic(name, { codec: bytesCodec }),
    subscription: 's',
    handle: outcome,
  });
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  runtimes.push(await Runtime.start({ transport, handlers: [handler], logger: consoleLogger({ level: 'silent' }) }));
}

class Burnt extends Error {
  override readonly name = 'Burnt';
}
const burn = (): Outcome => poison(new Burnt('the soup is burnt', { cause: new Error('the stove is on') }));

const ORIGINAL: PeerMessage = {
  value: 'ünïcödé',
  key: 'ключ',
  orderingKey: 'o',
  properties: { tenant: 'acme', ä: '日本' },
  eventTimeMs: 1_234_567_890_123,
};
const WHY = {
  'pulsework-attempt': '1',
  'pulsework-cause': 'poison',
  'pulsework-cause-chain': 'Error: the stove is on',
  'pulsework-dead-letter-version': '1',
  'pulsework-error-message': 'the soup is burnt',
  'pulsework-error-name': 'Burnt',
  'pulsework-handler': 'kitchen',
  'pulsework-reason': 'the soup is burnt',
  'pulsework-subscription': 's',
};
const SHAPES: Readonly<Record<string, RegExp>> = {
  'pulsework-fingerprint': /^Burnt at \S/,
  'pulsework-first-failure-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
  'pulsework-host': /./,
  'pulsework-last-failure-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
  'pulsework-process-id': /^\d+$/,
  'pulsework-stack': /^Burnt: the soup is burnt\n +at /,
  'pulsework-version': /^\d+\.\d+\.\d+/,
};

for (const { client, test } of CLIENTS) {
  test(`${client} reads a dead letter of this runtime with all of its properties`, async ({ pulsar, java, peer }) => {
    const name = pulsar.newTopic();
    const letters = await peer.subscribe(pulsar.serviceUrl, `${name}-s-DLQ`, { subscription: 'desk' });
    await handle(pulsar, name, burn);

    const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);

    const [letter] = await letters.receive(1);
    const { value, key, orderingKey, properties, eventTimeMs } = letter!;
    expect({ value: String(value), key, orderingKey: String(orderingKey), eventTimeMs }).toEqual({
      value: ORIGINAL.value,
      key: ORIGINAL.key,
      orderingKey: ORIGINAL.orderingKey,
      eventTimeMs: ORIGINAL.eventTimeMs,
    });
    const expected: Record<string, unknown> = {
      ...ORIGINAL.properties,
      ...WHY,
      REAL_TOPIC: name,
      ORIGIN_MESSAGE_ID: sent?.id,
    };
    for (const [property, shape] of Object.entries(SHAPES)) expected[property] = expect.stringMatching(shape);
    expect(properties).toEqual(expected);
  });

  test(`${client} finds the origin of a dead letter that came from a batch on a partition`, async ({
    pulsar,
    java,
    peer,
  }) => {
    const name = pulsar.newTopic();
    await pulsar.admin.createPartitionedTopic(name, 3);
    const letters = await peer.subscribe(pulsar.serviceUrl, `${name}-s-DLQ`, { subscription: 'desk' });
    await handle(pulsar, name, ({ payload }) => (String(payload) === 'bad' ? burn() : success()));

    const messages = ['good', 'bad', 'good'].map((value) => ({ value, key: 'same' }));
    const sent = await java.produce(pulsar.serviceUrl, name, messages, { batching: 'on' });

    const [letter] = await letters.receive(1);
    expect(String(letter?.value)).toBe('bad');
    expect(letter?.properties).toMatchObject({ REAL_TOPIC: name, ORIGIN_MESSAGE_ID: sent[1]?.id });
    expect(letter?.properties['ORIGIN_MESSAGE_ID']).toMatch(/^\d+:\d+:[012]:1$/);
  });

  test(`a dead letter of ${client} is read here, and keeps its origin when it dies again`, async ({
    pulsar,
    java,
    peer,
  }) => {
    const name = pulsar.newTopic();
    const letters = `${name}-s-DLQ`;
    const dead = await java.subscribe(pulsar.serviceUrl, `${letters}-s-DLQ`, { subscription: 'desk' });
    const here: Delivery[] = [];
    await handle(pulsar, letters, (delivery) => {
      here.push(delivery);
      return burn();
    });

    const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);
    const [again] = await letDie(pulsar, peer, name, () => dead.receive(1));

    const { payload, properties, key, id } = here[0]!;
    const { REAL_TOPIC, ORIGIN_MESSAGE_ID } = properties;
    expect([String(payload), key, id.topic, REAL_TOPIC]).toEqual([ORIGINAL.value, ORIGINAL.key, letters, name]);
    expect(numbersOf(ORIGIN_MESSAGE_ID).slice(0, 2)).toEqual(numbersOf(sent?.id).slice(0, 2));
    expect(again?.properties).toMatchObject({ ...ORIGINAL.properties, ...WHY, REAL_TOPIC, ORIGIN_MESSAGE_ID });
  });
}

test('Java writes origin and event time of a dead letter as this runtime does, Python the origin in a form of its own', async ({
  pulsar,
  java,
  python,
}) => {
  const seen: Record<string, unknown> = {};
  for (const peer of [java, python]) {
    const name = pulsar.newTopic();
    const [sent] = await java.produce(pulsar.serviceUrl, name, [ORIGINAL]);
    const letters = await java.subscribe(pulsar.serviceUrl, `${name}-s-DLQ`, { subscription: 'desk' });
    const [letter] = await letDie(pulsar, peer, name, () => letters.receive(1));
    const [ledger, entry] = numbersOf(sent?.id);
    const origin = letter?.properties['ORIGIN_MESSAGE_ID']
      ?.replace(String(ledger), 'ledger')
      .replace(String(entry), 'entry');
    seen[peer.name] = { origin, eventTimeMs: letter?.eventTimeMs };
  }

  expect(seen).toEqual({
    [java.name]: { origin: 'ledger:entry:-1', eventTimeMs: ORIGINAL.eventTimeMs },
    [python.name]: { origin: '(ledger,entry,-1,-1)', eventTimeMs: 0 },
  });
});

const numbersOf = (text: string | undefined): readonly number[] => [...(text ?? '').matchAll(/-?\d+/g)].map(Number);

/** The client refuses the message until its own dead letter policy moves it, which `arrived` waits for. */
async function letDie<T>(pulsar: SharedPulsar, peer: PulsarPeer, name: string, arrived: () => Promise<T>): Promise<T> {
  const consumer = await peer.subscribe(pulsar.serviceUrl, name, {
    subscription: 's',
    type: 'shared',
    negativeAckDelayMs: 100,
    deadLetter: { maxRedeliverCount: 1 },
  });
  for (let delivery = 1; delivery <= 2; delivery++) await consumer.negativeAcknowledge(await consumer.receive(1));
  // It is moved when it would be delivered once more, which the client does not show.
  const moving = consumer.receive(1, 30_000).catch(() => []);
  const letter = await arrived();
  await consumer.close();
  await moving;
  return letter;
}
