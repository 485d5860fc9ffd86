// What happens when a whole broker is killed, stands still or is stopped: one broker for this file, which no other test uses.
// Every message is counted, and none is missing.
import { existsSync } from 'node:fs';
import { describe, expect, vi } from 'vitest';
import { runOutage } from '../campaign/outage-run.js';
import { CountingPublisher, asMessages, consume, texts } from '../support/fault-clients.js';
import { testWithBroker } from '../support/real-pulsar/integration-test.js';
import { isAlive } from '../support/real-pulsar/processes.js';

// A broker starts within seconds; on an overloaded machine within minutes.
vi.setConfig({ testTimeout: 300_000 });

const test = testWithBroker();

/** Taken for dead after one and a half seconds of silence. */
const QUICK_TO_NOTICE = { keepAliveMs: 500, connectTimeoutMs: 1_000 };
/** Calls time out in the middle of the outage, and the broker's return is seen at once. */
const QUICK_OPTIONS = {
  wire: { ...QUICK_TO_NOTICE, reconnectMinMs: 10, reconnectMaxMs: 500 },
  callTimeoutMs: 2_000,
};
const OUTAGE_MS = 5_000;

describe('the wire client', { retry: 0 }, () => {
  test('a broker that is killed while it delivers, and starts again, loses nothing', async ({ broker, java }) => {
    // All of it before: how long Java's client waits for receipts is shorter than a start on a busy machine.
    await java.produce(broker.serviceUrl, 'killed', asMessages(texts(0, 2_000)));
    const consumer = await consume(broker.serviceUrl, 'killed', { prefetch: 50 });
    await consumer.until(100);

    const killing = broker.restart();
    const before = consumer.counts.size;
    await killing;
    await java.produce(broker.serviceUrl, 'killed', asMessages(texts(2_000, 100)));
    await consumer.until(2_100);

    expect(before).toBeLessThan(2_000);
    expect(consumer.missing(texts(0, 2_100))).toEqual([]);
    expect(consumer.connections).toBeGreaterThan(1);
  });

  test('a broker that stands still for longer than the keep-alive loses nothing', async ({ broker, java }) => {
    const consumer = await consume(broker.serviceUrl, 'frozen', { prefetch: 50 }, QUICK_TO_NOTICE);
    await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(0, 100)));
    await consumer.until(100);
    const before = consumer.connections;

    await broker.freezeFor(4_000);
    await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(100, 100)));
    await consumer.until(200);

    expect(consumer.missing(texts(0, 200))).toEqual([]);
    expect(consumer.connections).toBeGreaterThan(before);
  });

  test('what is published while the broker is killed and starts again has its receipt, and arrives', async ({
    broker,
  }) => {
    const consumer = await consume(broker.serviceUrl, 'published-over-a-kill');
    const publisher = await CountingPublisher.open(broker.serviceUrl, 'published-over-a-kill');
    await publisher.publishAll(texts(0, 1_000));
    const sending = publisher.publishAll(texts(1_000, 4_000), 20);
    await consumer.until(1_500);
    const confirmedBefore = publisher.confirmed;

    await broker.restart();
    const receipts = await sending;
    await consumer.until(5_000);

    expect(confirmedBefore).toBeLessThan(5_000);
    expect(receipts).toHaveLength(4_000);
    expect(consumer.missing(texts(0, 5_000))).toEqual([]);
  });

  test('what is published while the broker stands still has its receipt, and arrives', async ({ broker }) => {
    const consumer = await consume(broker.serviceUrl, 'published-frozen', {}, QUICK_TO_NOTICE);
    const publisher = await CountingPublisher.open(broker.serviceUrl, 'published-frozen', {}, QUICK_TO_NOTICE);
    await publisher.publishAll(texts(0, 100));
    await consumer.until(100);
    const before = consumer.connections;

    const thawed = broker.freezeFor(4_000);
    const sending = publisher.publishAll(texts(100, 400), 1_000);
    await thawed;
    await sending;
    await consumer.until(500);

    expect(consumer.missing(texts(0, 500))).toEqual([]);
    expect(consumer.connections).toBeGreaterThan(before);
  });
});

// The gate's share of the campaign `outage`: a shorter one, noticed sooner.
describe('the runtime', { retry: 0 }, () => {
  for (const how of ['frozen', 'killed'] as const) {
    test(`a broker that is ${how} in the middle of settlements leaves nothing unsettled`, async ({ broker }) => {
      const { violations, before, after } = await runOutage(broker, { how, durationMs: OUTAGE_MS, ...QUICK_OPTIONS });

      expect(violations).toEqual([]);
      expect(before).toBeLessThan(after);
    });
  }
});

describe('the harness', { retry: 0 }, () => {
  test('a frozen broker answers once it goes on', async ({ broker, java }) => {
    broker.freeze();
    const sending = java.produce(broker.serviceUrl, 'frozen-briefly', [{ value: 'a' }]);
    const first = await Promise.race([sending.then(() => 'answer'), broker.freezeFor(1_000).then(() => 'going on')]);

    expect(first).toBe('going on');
    await expect(sending).resolves.toHaveLength(1);
  });

  // Of the acknowledged ones some may come again: a receipt says that the broker knows, not that its disk does.
  test('what was not acknowledged survives kill -9 and a restart', async ({ broker, java }) => {
    const messages = Array.from({ length: 100 }, (_, index) => ({ value: `message ${index}` }));
    await java.produce(broker.serviceUrl, 'kept', messages);
    const before = await java.subscribe(broker.serviceUrl, 'kept', { subscription: 's' });
    await before.acknowledge((await before.receive(100)).slice(0, 50));
    await before.close();

    await broker.restart();
    const after = await java.subscribe(broker.serviceUrl, 'kept', { subscription: 's' });

    const received = new Set((await after.receive(100, 5_000)).map(({ value }) => String(value)));
    const lost = messages.slice(50).filter(({ value }) => !received.has(value));
    expect(lost).toEqual([]);
  });

  test('a broker that cannot start says why', async ({ startBroker }) => {
    await expect(startBroker({ settings: { brokerServicePort: 'not a number' } })).rejects.toThrow(
      /the broker ended \(exit code \d+\); its log ended with:[\s\S]*not a number/,
    );
  });

  test('a broker that is stopped leaves neither process nor data', async ({ broker }) => {
    const { pid, folder } = broker;

    await broker.stop();

    expect({ alive: isAlive(pid), data: existsSync(folder) }).toEqual({ alive: false, data: false });
  });
});
