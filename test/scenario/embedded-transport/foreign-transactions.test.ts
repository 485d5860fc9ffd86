// A transaction is of one broker. Given to another one, its id would be that of somebody else's transaction there.
import { embedded } from 'pulsework/embedded';
import { expect, it } from 'vitest';
import { Runtime } from 'pulsework';

const SHARED = {
  subscription: 's',
  type: 'shared',
  initialPosition: 'earliest',
  prefetch: 10,
  consumerName: 'one',
} as const;
const message = { payload: new Uint8Array(1), properties: {} };

it('one of another broker is refused by publish and acknowledge, and takes nothing into one of the same id', async () => {
  const [one, two] = [embedded(), embedded()];
  const [foreign, own] = [await one.newTransaction(), await two.newTransaction()];
  expect(foreign.id).toEqual(own.id);
  const publisher = await two.publisher('orders');
  const orders = await two.subscribe({ topics: ['orders'], ...SHARED });
  await publisher.publish(message, publisher.nextSequenceId());
  const received = await orders.receive(AbortSignal.timeout(5_000));
  if (received === undefined) throw new Error('nothing came');

  const refused = { code: 'CONFIGURATION_INVALID', message: expect.stringContaining('of another broker') as string };
  const inForeign = { transaction: foreign };
  await expect(publisher.publish(message, publisher.nextSequenceId(), inForeign)).rejects.toMatchObject(refused);
  await expect(orders.acknowledge([received.id], inForeign)).rejects.toMatchObject(refused);

  await orders.acknowledge([received.id], { transaction: own });
  await own.commit();
  await foreign.commit();
  await Promise.all([one.close(), two.close()]);
});

it('transports of one broker take those of each other', async () => {
  const one = embedded();
  const two = embedded({ broker: one.broker });
  const transaction = await one.newTransaction();
  const publisher = await two.publisher('orders');

  await publisher.publish(message, publisher.nextSequenceId(), { transaction });
  await transaction.commit();
  expect(transaction.state).toBe('committed');
  await two.close();
  await one.close();
});

it('runtime.transaction says what is wrong with its arguments', async () => {
  const runtime = await Runtime.start({ transport: embedded(), handlers: [] });

  await expect(runtime.transaction(undefined as never)).rejects.toThrow('"work" is missing');
  await expect(runtime.transaction(() => 1, null as never)).rejects.toThrow('"options" must be an object, got null');
  await runtime.drain();
});
