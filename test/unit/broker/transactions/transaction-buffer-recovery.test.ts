// What a topic makes of the records that it finds when a broker died between two of them (T-45, T-46).
import { expect, it } from 'vitest';
import { TransactionEntry } from '../../../../src/broker/entry.js';
import { TopicLog } from '../../../../src/broker/topic-log.js';
import { TransactionBuffer } from '../../../../src/broker/transactions/transaction-buffer.js';
import type { FinalState } from '../../../../src/broker/transactions/txn-paths.js';
import { message } from '../broker-kit.js';
import { A, B, SEGMENT } from './pending-ack-kit.js';
import { SegmentWorld } from './segment-world.js';

/** A topic with one entry of each of the transactions, in a ledger of number 1. */
async function topicWith(...transactions: readonly string[]) {
  const world = await SegmentWorld.with(A, B);
  const log = new TopicLog({ entries: 100, bytes: 1_000 }, () => 1);
  for (const transaction of transactions) {
    const facts = { publishTimeMs: 0, bytes: 1 };
    const entry = new TransactionEntry(message('x'), facts, { producerName: 'p', sequenceId: 0, transaction });
    log.confirm(log.append(entry), true);
  }
  const dropped: number[] = [];
  const { records, clock } = world;
  const op = (transaction: string) =>
    records.appendOp(transaction, { kind: 'WRITE', segment: SEGMENT, ledgerId: 0, entryId: 0 });
  const opened = async () => {
    const topic = {
      ...{ name: SEGMENT, log, clock },
      written: () => undefined,
      readable: () => undefined,
      dropped: (positions: readonly number[]) => void dropped.push(...positions),
    };
    const failures: Error[] = [];
    const buffer = new TransactionBuffer(topic, { records, report: (error) => void failures.push(error) });
    await buffer.open();
    expect(failures).toEqual([]);
    return { dropped, readEnd: log.readEnd };
  };
  return { world, records, op, opened };
}

it('where an operation is left the header decides, also before the watermark: the note of the abort was still to come', async () => {
  const { world, records, op, opened } = await topicWith(A, B);
  await op(A);
  await records.writeWatermark(SEGMENT, { ledgerId: 1, entryId: 1 });
  await world.end(A, 'ABORTED');
  expect(await opened()).toEqual({ dropped: [0], readEnd: 2 });
  expect(await records.abortedOn(SEGMENT)).toEqual([{ transaction: A, ledgerId: 1, entryId: 0 }]);
  expect(await records.writesTo(SEGMENT)).toEqual([]);
});

it('with neither operation nor note, what is before the watermark is committed, and what is behind it is none', async () => {
  const { records, opened } = await topicWith('9_1', '9_2');
  await records.writeWatermark(SEGMENT, { ledgerId: 1, entryId: 0 });
  expect(await opened()).toEqual({ dropped: [1], readEnd: 2 });
});

it.each<[FinalState, number[]]>([
  ['COMMITTED', []],
  ['ABORTED', [0]],
])('what is %s is in effect once it is open, and its operation is gone', async (state, dropped) => {
  const { world, records, op, opened } = await topicWith(A);
  await op(A);
  await world.end(A, state);
  expect(await opened()).toEqual({ dropped, readEnd: 1 });
  expect(await records.writesTo(SEGMENT)).toEqual([]);
});

it('what is open hides what is behind it', async () => {
  const { world, op, opened } = await topicWith(A, B);
  await op(A);
  await op(B);
  await world.end(A, 'COMMITTED');
  expect(await opened()).toEqual({ dropped: [], readEnd: 1 });
});

it('what was noted as aborted is none, whatever else is known', async () => {
  const { records, opened } = await topicWith('9_1');
  await records.writeAborted(SEGMENT, { transaction: '9_1', ledgerId: 1, entryId: 0 });
  await records.writeWatermark(SEGMENT, { ledgerId: 1, entryId: 0 });
  expect(await opened()).toEqual({ dropped: [0], readEnd: 1 });
});
