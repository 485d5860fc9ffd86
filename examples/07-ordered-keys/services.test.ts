// The order of an account, and the account that waits for a person, in virtual time.
import { minutes, seconds } from 'pulsework';
import { testRuntime } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { Ledger, bookings } from './services.js';

async function start() {
  const ledger = new Ledger();
  const kit = await testRuntime({ handlers: [Ledger], resolve: () => ledger });
  const book = (account: string, number: number, toAccount = 'savings') =>
    kit.publish(bookings, { account, number, toAccount }, { key: account });
  return { ledger, kit, book };
}

it('keeps the order of an account that fails, while others go on', async () => {
  const { ledger, kit, book } = await start();
  for (const number of [1, 2]) for (const account of ['alice', 'bob']) await book(account, number);
  await kit.settled();
  expect(ledger.booked).toEqual(['alice 1', 'alice 2']);
  ledger.locked.delete('bob');
  await kit.advanceBy(seconds(1));
  expect(ledger.booked.slice(2)).toEqual(['bob 1', 'bob 2']);
  await kit.close();
});

it('keeps an account waiting until a person skips its booking', async () => {
  const { ledger, kit, book } = await start();
  await book('carol', 1, 'nowhere');
  await book('carol', 2);
  await kit.advanceBy(minutes(60));
  expect(ledger.booked).toEqual([]);
  const subscription = kit.runtime.subscription('ledger', bookings.name);
  expect(subscription.blockedKeys()).toMatchObject([{ key: 'carol', cause: 'poison' }]);
  expect(subscription.skip('carol')).toBe(true);
  await kit.settled();
  expect(ledger.booked).toEqual(['carol 2']);
  expect(kit.deadLetters(bookings)).toMatchObject([{ key: 'carol', reason: 'there is no account "nowhere"' }]);
  await kit.close();
});
