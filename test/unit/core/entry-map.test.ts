import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EntryMap } from '../../../src/core/entry-map.js';
import type { EntryPosition } from '../../../src/core/message-id.js';

const at = (ledgerId: number, entryId: number, partition = -1): EntryPosition => ({ ledgerId, entryId, partition });

describe('EntryMap', () => {
  it('finds a value by ledger, entry and partition, whatever else the key carries', () => {
    const map = new EntryMap<string>().set(at(1, 2, 3), 'a');
    const id = { ...at(1, 2, 3), batchIndex: 7, batchSize: 9, topic: 't' };
    expect(map.get(id)).toBe('a');
  });

  it.each([
    [at(2, 1), at(1, 2)],
    [at(1, 1, 0), at(1, 1, 1)],
    [at(1, 1, -1), at(1, 1, 0)],
    [at(2 ** 32 + 1, 1), at(1, 1)],
    [at(1, 2 ** 32 + 5), at(1, 5)],
    [at(Number.MAX_SAFE_INTEGER, 1), at(Number.MAX_SAFE_INTEGER - 1, 1)],
  ])('tells %j from %j', (a, b) => {
    const map = new EntryMap<string>().set(a, 'a').set(b, 'b');
    expect([map.get(a), map.get(b), map.size]).toEqual(['a', 'b', 2]);
  });

  it('replaces the value of a known position', () => {
    const map = new EntryMap<string>().set(at(1, 1), 'a').set(at(1, 1), 'b');
    expect([map.get(at(1, 1)), map.size]).toEqual(['b', 1]);
  });

  it('says whether there was something to delete', () => {
    const map = new EntryMap<string>().set(at(1, 1), 'a');
    expect([map.delete(at(1, 1)), map.delete(at(1, 1)), map.size]).toEqual([true, false, 0]);
  });

  it('may be changed while its values are walked through', () => {
    const map = new EntryMap<number>();
    for (let entry = 0; entry < 100; entry++) map.set(at(1, entry), entry);
    let seen = 0;
    for (const value of map.values()) {
      seen++;
      map.delete(at(1, value));
      map.set(at(2, value), value);
    }
    expect([seen, map.size]).toEqual([100, 100]);
  });

  it('is empty after clear and takes values again', () => {
    const map = new EntryMap<string>().set(at(1, 1), 'a');
    map.clear();
    expect([map.size, map.has(at(1, 1)), map.values()]).toEqual([0, false, []]);
    expect(map.set(at(1, 1), 'b').get(at(1, 1))).toBe('b');
  });

  it('behaves as a Map with text keys does', () => {
    const key = fc.record({
      ledgerId: fc.constantFrom(0, 1, 2 ** 32, 2 ** 40 + 1),
      entryId: fc.nat(30),
      partition: fc.constantFrom(-1, 0, 1),
    });
    const steps = fc.array(fc.record({ key, value: fc.option(fc.nat()) }), { maxLength: 300 });
    fc.assert(
      fc.property(steps, (program) => {
        const map = new EntryMap<number>();
        const model = new Map<string, number>();
        for (const { key: entry, value } of program) {
          if (value === null) expect(map.delete(entry)).toBe(model.delete(text(entry)));
          else model.set(text(entry), map.set(entry, value).get(entry)!);
          expect(map.size).toBe(model.size);
        }
        const entries = map.entries().map(([entry, value]) => [text(entry), value] as const);
        expect(new Map(entries)).toEqual(model);
        expect(map.values().sort()).toEqual([...model.values()].sort());
      }),
      { numRuns: 200, seed: 11 },
    );
  });

  it('holds fifty thousand entries of many ledgers', () => {
    const map = new EntryMap<number>();
    for (let n = 0; n < 50_000; n++) map.set(at(n % 500, Math.floor(n / 500), n % 3), n);
    for (let n = 0; n < 50_000; n += 2) map.delete(at(n % 500, Math.floor(n / 500), n % 3));
    expect([map.size, map.get(at(1, 0, 1)), map.get(at(0, 0, 0))]).toEqual([25_000, 1, undefined]);
  });
});

function text(entry: EntryPosition): string {
  return `${entry.ledgerId}:${entry.entryId}:${entry.partition}`;
}
