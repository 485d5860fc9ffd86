// The relay of an outbox over the wire on a real Pulsar: connections are cut, receipts are lost, and one relay follows another. What is published
// Java's client reads.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Runtime, TransportError, consoleLogger, topic } from 'pulsework';
import type { Transport } from 'pulsework';
import { sqliteOutbox } from 'pulsework/sqlite';
import { wire } from 'pulsework/wire';
import { expect, onTestFinished } from 'vitest';
import { sqliteDrivers } from '../support/metadata-places.js';
import { PulsarProxy } from '../support/pulsar-proxy.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { test } from '../support/real-pulsar/integration-test.js';
import { transportWith } from '../support/transport-with.js';

const KEYS = 10;
const ROUNDS = 6;
/** Of each topic: enough that a cut in the middle finds some on their way. */
const OF_A_ROUND = 60;

/** Of so many publishes one has its receipt lost on the way: the broker has the message, the relay does not know. */
const LOST_RECEIPTS = 9;

function losingReceipts(inner: Transport): Transport {
  let published = 0;
  return transportWith(inner, {
    publisher: async (name, options) => {
      const publisher = await inner.publisher(name, options);
      return {
        topic: publisher.topic,
        nextSequenceId: () => publisher.nextSequenceId(),
        publish: async (message, sequenceId) => {
          const receipt = await publisher.publish(message, sequenceId);
          if (++published % LOST_RECEIPTS !== 0) return receipt;
          throw new TransportError('CONNECTION_LOST', 'the receipt was lost, played', { retriable: true });
        },
        close: () => publisher.close(),
      };
    },
  });
}

/** A database, and relays of its outbox one after the other. */
async function newOutbox(proxy: PulsarProxy) {
  const [Database] = Object.values(sqliteDrivers);
  if (Database === undefined) throw new Error('no driver of SQLite');
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-relay-'));
  const database = new Database(join(folder, 'service.db'));
  const outbox = sqliteOutbox({ database });
  await outbox.open();
  const lead = (): Promise<Runtime> =>
    Runtime.start({
      transport: losingReceipts(wire({ serviceUrl: proxy.serviceUrl, reconnectMinMs: 10, reconnectMaxMs: 200 })),
      handlers: [],
      outbox,
      logger: consoleLogger({ level: 'silent' }),
    });
  let relay = await lead();
  let relayedBefore = 0;
  const relayed = (): number => relayedBefore + (relay.outboxHealth()?.relayed ?? 0);
  onTestFinished(async () => {
    await relay.close();
    database.close();
    rmSync(folder, { recursive: true });
  });
  return {
    outbox,
    database,
    relayed,
    /** The relay ends in the middle of its work, and another one goes on. */
    anotherOne: async () => {
      await relay.close();
      relayedBefore = relayed();
      relay = await lead();
    },
    until: (count: number) => expect.poll(relayed, { timeout: 60_000, interval: 5 }).toBeGreaterThanOrEqual(count),
    isEmpty: () =>
      expect
        .poll(() => relay.outboxHealth(), { timeout: 60_000, interval: 50 })
        .toMatchObject({ role: 'leading', waiting: 0, claimed: 0, refused: 0 }),
  };
}

/** The policy acts some time after it was set. */
async function deduplicatingTopic({ admin, newTopic }: Pick<SharedPulsar, 'admin' | 'newTopic'>, serviceUrl: string) {
  const name = newTopic('once');
  await admin.createTopic(name);
  await admin.topicPolicy(name, 'deduplicationEnabled', true);
  const transport = wire({ serviceUrl });
  const probe = await transport.publisher(name, { producerName: 'probe' });
  const isDropped = async (): Promise<boolean> =>
    (await probe.publish({ payload: Buffer.from('{"n":-1}'), properties: {} }, 0)).ledgerId < 0;
  await expect.poll(isDropped, { timeout: 30_000, interval: 100 }).toBe(true);
  await transport.close();
  return name;
}

interface Seen {
  readonly n: number;
  readonly key: string | null;
  readonly messageId: string | undefined;
}

test('what an outbox has is there once where the topic deduplicates, at least once elsewhere, in the order of its keys', async ({
  pulsar,
  java,
}) => {
  const proxy = await PulsarProxy.start(new URL(pulsar.serviceUrl).host);
  const names = [
    await deduplicatingTopic({ admin: pulsar.admin, newTopic: (name) => pulsar.newTopic(name) }, pulsar.serviceUrl),
    pulsar.newTopic('again'),
  ];
  const topics = names.map((name) => topic<{ readonly n: number }>(name));
  const { outbox, database, until, isEmpty, anotherOne, relayed } = await newOutbox(proxy);
  for (let round = 0; round < ROUNDS; round++) {
    const before = relayed();
    for (let i = 0; i < OF_A_ROUND; i++) {
      const n = round * OF_A_ROUND + i;
      database.exec('BEGIN');
      for (const to of topics) outbox.add(database, to.message({ n }, { key: `key ${n % KEYS}` }));
      database.exec('COMMIT');
    }
    await until(before + OF_A_ROUND / 4);
    if (round % 2 === 0) proxy.reset();
    else await anotherOne();
  }
  await isEmpty();
  await proxy.close();

  const [once = [], atLeastOnce = []] = await Promise.all(
    names.map(async (name) =>
      (await java.readAll(pulsar.serviceUrl, name))
        .map(({ value, key, properties }): Seen => ({
          n: (JSON.parse(Buffer.from(value ?? []).toString()) as { n: number }).n,
          key,
          messageId: properties['pulsework-message-id'],
        }))
        .filter(({ n }) => n >= 0),
    ),
  );
  const all = Array.from({ length: ROUNDS * OF_A_ROUND }, (_, n) => n);
  expect(once.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(all);
  const firstTimes = [...new Map(atLeastOnce.toReversed().map((seen) => [seen.n, seen])).values()].toReversed();
  for (const seen of [once, firstTimes])
    for (let key = 0; key < KEYS; key++)
      expect(seen.filter((each) => each.key === `key ${key}`).map(({ n }) => n)).toEqual(
        all.filter((n) => n % KEYS === key),
      );
  // There are repeats, and each has the id of the first time.
  expect(atLeastOnce.length).toBeGreaterThan(all.length);
  expect(new Set(atLeastOnce.map(({ n, messageId }) => `${n} ${messageId}`)).size).toBe(all.length);
}, 180_000);
