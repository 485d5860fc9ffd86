// What this process remembers of failed messages: each message by itself, and never more than a bound.
import { describe, expect, it } from 'vitest';
import type { MessageId } from '../../../src/index.js';
import { FailureHistories, NO_FAILURES, afterFailure } from '../../../src/runtime/failure-histories.js';

const id = (entryId: number, more: Partial<MessageId> = {}): MessageId => ({
  ledgerId: 7,
  entryId,
  partition: -1,
  batchIndex: -1,
  batchSize: 0,
  topic: 't',
  ...more,
});
const failed = (times: number) => afterFailure(NO_FAILURES, times, 1_000);

describe('histories of failures', () => {
  it('are of one message: another entry, partition or place in a batch has its own', () => {
    const histories = new FailureHistories();
    const all = [
      id(1),
      id(2),
      id(1, { partition: 0 }),
      id(1, { partition: 1 }),
      id(1, { batchIndex: 0, batchSize: 2 }),
      id(1, { batchIndex: 1, batchSize: 2 }),
      id(1, { partition: 0, batchIndex: 1, batchSize: 2 }),
    ];
    for (const [i, each] of all.entries()) histories.remember(each, failed(i + 1));
    expect(all.map((each) => histories.get(each).failures)).toEqual([1, 2, 3, 4, 5, 6, 7]);

    histories.forget(all[5] as MessageId);
    expect(all.map((each) => histories.get(each).failures)).toEqual([1, 2, 3, 4, 5, 0, 7]);
  });

  it('are the newest of a message, however long ago the one before was', () => {
    const histories = new FailureHistories();
    histories.remember(id(0), failed(1));
    for (let entry = 1; entry <= 5_000; entry++) histories.remember(id(entry), failed(1));
    histories.remember(id(0), failed(2));
    expect(histories.get(id(0)).failures).toBe(2);

    histories.forget(id(0));
    expect(histories.get(id(0))).toBe(NO_FAILURES);
  });

  it('of the newest 5,000 messages are kept, of those before the newest 10,000 none', () => {
    const histories = new FailureHistories();
    const count = 23_456;
    for (let entry = 0; entry < count; entry++) histories.remember(id(entry), failed(1));
    const kept = Array.from({ length: count }, (_, entry) => histories.get(id(entry)).failures);
    expect(kept.slice(-5_000)).not.toContain(0);
    expect(kept.slice(0, -10_000)).not.toContain(1);
  });
});
