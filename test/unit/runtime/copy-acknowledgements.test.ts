import { beforeEach, expect, it } from 'vitest';
import { minutes, seconds } from '../../../src/core/options.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { CopyAcknowledgements } from '../../../src/runtime/copy-acknowledgements.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

const ID: MessageId = { ledgerId: 1, entryId: 2, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' };

let clock: FakeClock;
let calls: number;
let fails: boolean;
let unsettled: boolean;
let copies: CopyAcknowledgements;
beforeEach(() => {
  clock = new FakeClock();
  calls = 0;
  fails = true;
  unsettled = false;
  copies = new CopyAcknowledgements({
    clock,
    random: () => 0.5,
    registry: { isUnsettled: () => unsettled },
    reporter: { callFailed: () => undefined } as never,
    subscription: { acknowledge: async () => undefined } as never,
    calls: {
      run: async () => {
        calls++;
        if (fails) throw new Error('lost');
      },
    } as never,
  });
});

it('is repeated, ever more slowly, until the broker has it', async () => {
  copies.add(ID);
  await clock.advanceBy(seconds(8));
  expect(calls).toBe(4);
  fails = false;
  await clock.advanceBy(minutes(10));
  expect(calls).toBe(5);
});

it('is not repeated once the message is here anew: it may fail', async () => {
  copies.add(ID);
  await clock.advanceBy(0);
  unsettled = true;
  await clock.advanceBy(minutes(10));
  expect(calls).toBe(1);
  expect(clock.pendingTimers).toEqual([]);
});

it('another copy of the message takes the place of the one before', async () => {
  copies.add(ID);
  await clock.advanceBy(0);
  copies.add(ID);
  await clock.advanceBy(0);
  expect(clock.pendingTimers).toHaveLength(1);
  copies.add({ ...ID, topic: 'another' });
  await clock.advanceBy(0);
  expect(clock.pendingTimers).toHaveLength(2);
  copies.close();
  expect(clock.pendingTimers).toEqual([]);
});
