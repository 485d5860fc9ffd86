// What a coordinator believes open, by the rule T-06.
import type { MetadataStore } from 'pulsework/sqlite';
import { expect, it } from 'vitest';
import { ActiveTransactions } from '../../../../src/broker/transactions/active-transactions.js';
import type { TxnHeader } from '../../../../src/broker/transactions/txn-records.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import { faultyStore, worldOf } from './transaction-kit.js';

const OPEN: TxnHeader = { state: 'OPEN', timeoutMs: 60_000, createdAtMs: 1_000, finalizedAtMs: null, owner: null };

it('T-06: it forgets those that others ended, and none that began while it looked', async () => {
  const memory = memoryMetadataStore();
  await memory.open();
  let goOn: () => void = () => undefined;
  const until = new Promise<void>((resolve) => (goOn = resolve));
  const slow: MetadataStore = {
    ...faultyStore(memory, () => undefined),
    scanIndex: async (range) => {
      const found = await memory.scanIndex(range);
      await until;
      return found;
    },
  };
  const { records } = worldOf(slow);
  const active = new ActiveTransactions(records, 0, 2);
  const begin = (transaction: string) => async () => {
    await records.createHeader(transaction, OPEN);
    return transaction;
  };
  await active.begin(begin('0_1'));
  await records.finalizeHeader((await records.readHeader('0_1'))!, 'ABORTED', 2_000);
  const forgetting = active.forgetEnded();
  await active.begin(begin('0_2'));
  goOn();
  await forgetting;

  await active.begin(begin('0_3'));
  await expect(active.begin(begin('0_4'))).rejects.toMatchObject({ code: 'BROKER_ERROR' });
  active.ended('0_2');
  expect(active.isEmpty).toBe(false);
  active.ended('0_3');
  expect(active.isEmpty).toBe(true);
});

it('knows of none that a sweep ended', async () => {
  const memory = memoryMetadataStore();
  await memory.open();
  const world = worldOf(memory);
  const coordinator = world.coordinator();
  await coordinator.newTransaction({ timeoutMs: 10 });
  await world.clock.advanceBy(60_000);
  expect(world.clock.pendingTimers).toEqual([]);
  // Were the first one still believed open, nobody would look a second after the end of this one.
  await coordinator.end(await coordinator.newTransaction({ timeoutMs: 60_000 }), 'commit');

  expect(world.clock.pendingTimers).toEqual([1_000]);
  await coordinator.close();
});
