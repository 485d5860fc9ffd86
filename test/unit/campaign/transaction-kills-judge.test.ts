// That the judge of `transaction-kills` sees each thing that must not be.
import { describe, expect, it } from 'vitest';
import { judged } from '../../support/transaction-kills/kills-judge.js';

const FIRST = ['send 0.0', 'sent 0.0', 'try 0.0 by 0/1/0', 'committed 0.0 by 0/1/0', 'send 0.1', 'try 0.1 by 0/1/1'];
const LAST = ['saw results 0.0 by 0/1/0', 'saw journal 0.0 by 0/1/0', 'closed'];

function violations(first: readonly string[], last: readonly string[]): readonly string[] {
  return judged([
    { told: first, isLast: false },
    { told: last, isLast: true },
  ]).violations;
}

describe('the judge of killed services', () => {
  it('finds nothing wrong where each job has one result, and counts what was cut', () => {
    expect(judged([{ told: [...FIRST, ...LAST], isLast: true }])).toEqual({
      ...{ committed: 1, aborted: 0, cut: 1 },
      violations: [],
    });
  });

  it.each([
    [
      'a lost result',
      FIRST,
      ['closed'],
      ['its receipt was given, and it has no result: 0.0', 'committed, and not there: 0.0 by 0/1/0'],
    ],
    ['a lost entry of the journal', FIRST, [LAST[0]!, 'closed'], ['results and journal differ: 0.0 by 0/1/0']],
    [
      'a second result',
      FIRST,
      [...LAST, 'saw results 0.0 by 1/1/0', 'saw journal 0.0 by 1/1/0'],
      ['it has more results than one: 0.0'],
    ],
    [
      'a result that was aborted',
      [...FIRST, 'aborted 0.1 by 0/1/1', 'saw results 0.1 by 0/1/1'],
      LAST,
      ['aborted, and seen: 0.1 by 0/1/1', 'seen once, and gone later: 0.1 by 0/1/1'],
    ],
    ['a result of nothing', FIRST, [...LAST, 'saw results x', 'saw journal x'], ['nobody published it: x']],
    ['what is left', FIRST, [...LAST, 'late records are left'], ['in the end records are left']],
    ['an end that never came', FIRST, LAST.slice(0, 2), ['the last life did not come to its end']],
  ])('sees %s', (_, first, last, expected) => {
    expect(violations(first, last)).toEqual(expected);
  });
});
