// A sorted list against a plain sorted array, over enough items for many pieces.
import { expect, it } from 'vitest';
import { SortedList } from '../../../src/stores/memory/sorted-list.js';
import { seeded } from '../../support/seeded.js';

const byNumber = (a: number, b: number): number => a - b;

it('holds each item once and in order while 5,000 come and all go again', () => {
  const random = seeded(7);
  const list = new SortedList<number>(byNumber);
  const plain = new Set<number>();
  const sorted = (): readonly number[] => [...plain].sort(byNumber);
  for (let n = 0; n < 8_000; n++) {
    const item = Math.floor(random() * 6_000);
    if (random() < 0.8) {
      list.add(item);
      plain.add(item);
    } else {
      list.delete(item);
      plain.delete(item);
    }
  }

  expect([...list.from(() => true)]).toEqual(sorted());
  for (const bound of [-1, 0, 17, 2_999, 5_998, 6_000])
    expect([...list.from((item) => item >= bound)]).toEqual(sorted().filter((item) => item >= bound));
  for (const item of plain) list.delete(item);
  expect(list.isEmpty).toBe(true);
  list.add(5);
  expect([...list.from(() => true)]).toEqual([5]);
});

it.each([
  ['upwards', (n: number) => n],
  ['downwards', (n: number) => 3_000 - n],
])('takes what comes %s', (_how, of) => {
  const list = new SortedList<number>(byNumber);
  for (let n = 0; n < 3_000; n++) list.add(of(n));

  expect([...list.from(() => true)]).toEqual(Array.from({ length: 3_000 }, (_, n) => of(n)).sort(byNumber));
});
