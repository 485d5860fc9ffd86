// The tests of the service: no broker, no sleeps, and the carrier is whatever the test says.
import { minutes, seconds } from 'pulsework';
import { testRuntime } from 'pulsework/testing';
import type { TestRuntime } from 'pulsework/testing';
import { expect, it } from 'vitest';
import type { Carrier } from './services.js';
import { AddressUnknown, CarrierBusy, Notices, Shipping, orders, parcels } from './services.js';

/** The service with this carrier, and what its customers were told. */
async function start(book: Carrier['book']): Promise<{ service: TestRuntime; told: readonly string[] }> {
  const told: string[] = [];
  const mailbox = { tell: async (text: string) => void told.push(text) };
  const parts = new Map<unknown, object>([
    [Shipping, new Shipping({ book })],
    [Notices, new Notices(mailbox)],
  ]);
  const resolve = (handlerClass: unknown): object => parts.get(handlerClass) ?? {};
  return { service: await testRuntime({ handlers: [Shipping, Notices], resolve }), told };
}

it('books a parcel and tells the customer', async () => {
  const { service, told } = await start(async ({ id }) => `T-${id}`);
  await service.publish(orders, { id: 'A-1', address: 'Oslo' });
  await service.settled();

  expect(service.published(parcels)).toMatchObject([{ payload: { orderId: 'A-1', trackingNumber: 'T-A-1' } }]);
  expect(told).toEqual(['order A-1 is on its way: T-A-1']);
  await service.close();
});

it('asks a busy carrier again when it has room, and not before', async () => {
  let asked = 0;
  const { service } = await start(async () => {
    asked += 1;
    if (asked < 3) throw new CarrierBusy(minutes(10));
    return 'T-2';
  });
  await service.publish(orders, { id: 'A-2', address: 'Bergen' });
  await service.advanceBy(minutes(20) - 1);

  expect(asked).toBe(2);
  await service.advanceBy(1);
  expect(service.outcomes().map(({ handler, attempt, outcome }) => [handler, attempt, outcome])).toEqual([
    ['Shipping.ship', 1, 'retry-after'],
    ['Shipping.ship', 2, 'retry-after'],
    ['Shipping.ship', 3, 'success'],
    ['Notices.tell', 1, 'success'],
  ]);
  await service.close();
});

it('gives up an unknown address at once', async () => {
  const { service } = await start(async ({ address }) => {
    throw new AddressUnknown(`nobody knows ${address}`);
  });
  await service.publish(orders, { id: 'A-3', address: 'Atlantis' });
  await service.settled();

  expect(service.deadLetters(orders)).toMatchObject([
    { payload: { id: 'A-3' }, reason: 'nobody knows Atlantis', cause: 'poison', attempts: 1 },
  ]);
  await service.close();
});

it('tells each customer once, on a broker at its worst', async () => {
  const { service, told } = await start(async ({ id }) => `T-${id}`);
  const faults = service.broker.inject({
    seed: 1,
    duplicate: { probability: 0.5, afterMs: [0, seconds(60)] },
    disconnect: 0.1,
    failPublish: 0.2,
    slowAcknowledge: 0.2,
  });
  for (let n = 1; n <= 50; n++) await service.publish(orders, { id: `B-${n}`, address: 'Oslo' });
  await service.advanceBy(minutes(30));

  expect(told.length).toBe(50);
  expect(new Set(told).size).toBe(50);
  expect(service.published(parcels).length).toBeGreaterThan(50);
  expect(faults.counts.duplicate).toBeGreaterThan(10);
  await service.close();
});
