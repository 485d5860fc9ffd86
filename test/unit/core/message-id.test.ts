import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MessageId } from '../../../src/core/message-id.js';
import {
  checkMessageId,
  compareMessageIds,
  formatMessageId,
  parseMessageId,
  sameEntry,
  sameMessageId,
} from '../../../src/core/message-id.js';

const plain: MessageId = { ledgerId: 7, entryId: 3, partition: -1, batchIndex: -1, batchSize: 0, topic: 't' };

const ids = fc.record({
  ledgerId: fc.maxSafeNat(),
  entryId: fc.maxSafeNat(),
  partition: fc.integer({ min: -1, max: 100 }),
  batchIndex: fc.integer({ min: -1, max: 100 }),
  batchSize: fc.constant(0),
  topic: fc.constant('t'),
});

describe('text form', () => {
  it.each([
    [plain, '7:3:-1'],
    [{ ...plain, partition: 2 }, '7:3:2'],
    [{ ...plain, partition: 2, batchIndex: 0, batchSize: 5 }, '7:3:2:0'],
  ])('%j is written %s, as Java does (S-46)', (id, text) => {
    expect(formatMessageId(id)).toBe(text);
  });

  it('reads back what it wrote', () => {
    fc.assert(
      fc.property(ids, (id) => {
        expect(parseMessageId(formatMessageId(id), 't')).toEqual(id);
      }),
      { seed: 1 },
    );
  });

  it.each(['', '1', '1:2', '1:2:3:4:5', 'a:b:c', '1:2:3:', ' 1:2:3', '1.5:2:3', '0x1:2:3', '1:2:3\n'])(
    'refuses %j',
    (text) => {
      expect(() => parseMessageId(text)).toThrow(/message id must be ledger:entry:partition\[:batch\], got/);
    },
  );

  it('refuses a number above 2^53-1 by name, instead of changing it', () => {
    expect(() => parseMessageId('1:9007199254740993:0')).toThrow(
      expect.objectContaining({ code: 'MESSAGE_ID_INVALID', message: expect.stringContaining('entryId') as string }),
    );
  });
});

describe('checkMessageId', () => {
  it.each(['ledgerId', 'entryId', 'partition', 'batchIndex', 'batchSize'] as const)(
    'names %s when it is not a whole number',
    (field) => {
      for (const value of [NaN, 0.5, 2 ** 53, '1']) {
        expect(() => checkMessageId({ ...plain, [field]: value })).toThrow(new RegExp(`field ${field} must be`));
      }
    },
  );

  it('takes the largest id there is', () => {
    expect(() => checkMessageId({ ...plain, ledgerId: Number.MAX_SAFE_INTEGER })).not.toThrow();
  });
});

describe('equality', () => {
  it.each(['ledgerId', 'entryId', 'partition', 'batchIndex'] as const)('of messages depends on %s (S-46)', (field) => {
    expect(sameMessageId(plain, { ...plain, [field]: 99 })).toBe(false);
  });

  it('of messages does not depend on what the text form leaves out', () => {
    expect(sameMessageId(plain, { ...plain, batchSize: 9, topic: 'other' })).toBe(true);
  });

  it('of entries does not depend on the batch index', () => {
    expect(sameEntry(plain, { ...plain, batchIndex: 4 } as MessageId)).toBe(true);
  });

  it.each(['ledgerId', 'entryId', 'partition'] as const)('of entries depends on %s', (field) => {
    expect(sameEntry(plain, { ...plain, [field]: 99 })).toBe(false);
  });
});

describe('order', () => {
  it.each([
    [
      { ledgerId: 1, entryId: 9 },
      { ledgerId: 2, entryId: 0 },
    ],
    [
      { entryId: 1, batchIndex: 9 },
      { entryId: 2, batchIndex: 0 },
    ],
    [{ batchIndex: -1 }, { batchIndex: 0 }],
    [{ batchIndex: 0 }, { batchIndex: 1 }],
    [
      { batchIndex: 0, partition: 5 },
      { batchIndex: 1, partition: 4 },
    ],
  ])('%j comes before %j', (a, b) => {
    const [first, second] = [
      { ...plain, ...a },
      { ...plain, ...b },
    ];
    expect(compareMessageIds(first, second)).toBeLessThan(0);
    expect(compareMessageIds(second, first)).toBeGreaterThan(0);
  });

  it('is 0 for equal ids only', () => {
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(compareMessageIds(a, b) === 0).toBe(sameMessageId(a, b));
        expect(compareMessageIds(a, a)).toBe(0);
      }),
      { seed: 2 },
    );
  });
});
