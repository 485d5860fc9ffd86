import { expect, it } from 'vitest';
import type { BatchScope } from '../../../src/redelivery/batch-scope.js';
import {
  WHOLE_ENTRY,
  scopeHas,
  scopeOf,
  withIndex,
  withoutIndex,
  withoutIndexesUpTo,
} from '../../../src/redelivery/batch-scope.js';

const scope = (...indexes: number[]): BatchScope => {
  const [first = WHOLE_ENTRY, ...others] = indexes;
  return others.reduce<BatchScope>((all, index) => withIndex(all, index), scopeOf(first));
};

it('is a bare number for one message', () => {
  expect(scope(3)).toBe(3);
});

it('holds several messages in ascending order, each once', () => {
  expect(scope(5, 1, 3, 5, 1)).toEqual([1, 3, 5]);
});

it('becomes the whole entry when an id without a batch index joins', () => {
  expect(scope(5, 1, -1)).toBe(WHOLE_ENTRY);
});

it('stays the whole entry when a message of it joins', () => {
  expect(scope(-1, 2)).toBe(WHOLE_ENTRY);
});

it.each([
  [[1, 3, 5], 3, [1, 5]],
  [[1, 3], 3, 1],
  [[1], 1, undefined],
  [[1], 2, 1],
  [[-1], 1, WHOLE_ENTRY],
])('%j without message %i leaves %j', (indexes, index, left) => {
  expect(withoutIndex(scope(...indexes), index)).toEqual(left);
});

it.each([
  [[1, 3, 5], 3, 5],
  [[1, 3, 5], 2, [3, 5]],
  [[1, 3, 5], 5, undefined],
  [[4], 4, undefined],
  [[4], 3, 4],
  [[-1], 9, WHOLE_ENTRY],
])('%j without the messages up to %i leaves %j', (indexes, index, left) => {
  expect(withoutIndexesUpTo(scope(...indexes), index)).toEqual(left);
});

it.each([
  [[1, 3], 3, true],
  [[1, 3], 2, false],
  [[1], 1, true],
  [[-1], 7, true],
])('%j has message %i: %s', (indexes, index, has) => {
  expect(scopeHas(scope(...indexes), index)).toBe(has);
});
