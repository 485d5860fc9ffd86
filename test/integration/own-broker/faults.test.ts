// Faults of a whole broker, which the shared one is spared.
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { testWithBroker } from '../../support/real-pulsar/integration-test.js';
import { isAlive } from '../../support/real-pulsar/processes.js';

const test = testWithBroker();

test('a frozen broker answers once it goes on', async ({ broker, java }) => {
  broker.freeze();
  const sending = java.produce(broker.serviceUrl, 'frozen', [{ value: 'a' }]);
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
