// That the judge of `transaction-kills` sees each thing that must not be.
import { describe, expect, it } from 'vitest';
import { judged } from '../../support/transaction-kills/kills-judge.js';

const FIRST = [
  ...['send 0.0.0,0.0.1', 'sent 0.0.0,0.0.1', 'try 0/0 out:0.0.0.0,log:0.0.0.1', 'committed 0/0'],
  ...['send 0.0.2', 'try 0/1 out:0.0.1.0,out:0.0.2.0'],
];
const SEEN = ['saw out 0/0 0.0.0.0', 'saw log 0/0 0.0.0.1', 'saw out 0/1 0.0.1.0', 'saw out 0/1 0.0.2.0'];
const LAST = [...SEEN, 'closed'];

const violations = (first: readonly string[], last: readonly string[]) => judged([first, last]).violations;
const without = (lines: readonly string[], ...gone: readonly string[]) => lines.filter((line) => !gone.includes(line));

describe('the judge of killed services', () => {
  it('finds nothing wrong where each job is in one transaction, and counts what was cut', () => {
    expect(judged([FIRST, LAST])).toEqual({ committed: 1, aborted: 0, cut: 1, violations: [] });
  });

  it('a job whose receipt was never given may be in none', () => {
    expect(violations([...FIRST, 'send 0.0.3'], LAST)).toEqual([]);
  });

  it.each<readonly [string, readonly string[], readonly string[], readonly string[]]>([
    [
      'a part of a transaction',
      FIRST,
      without(LAST, SEEN[3]!),
      ['of its transaction there is only a part, without out 0/1 0.0.2.0'],
    ],
    [
      'a transaction that is lost',
      FIRST,
      without(LAST, SEEN[0]!, SEEN[1]!),
      ['committed, and not there: 0/0', 'its receipt was given, and it is in no transaction: 0.0.0'],
    ],
    ['a message twice', FIRST, [...LAST, SEEN[0]!], [`it is there twice: ${SEEN[0]!.slice(4)}`]],
    [
      'a job twice',
      [...FIRST, 'try 0/2 out:0.0.0.0'],
      [...LAST, 'saw out 0/2 0.0.0.0'],
      ['it is in more transactions than one: 0.0.0'],
    ],
    [
      'what was aborted',
      [...FIRST, 'try 0/2 out:0.0.2.0', 'aborted 0/2', 'saw out 0/2 0.0.2.0'],
      LAST,
      ['aborted, and seen: 0/2', 'seen once, and gone later: out 0/2 0.0.2.0'],
    ],
    [
      'what nobody published',
      FIRST,
      [...LAST, 'saw out 9/9 0.0.9.0'],
      ['nobody published it: out 9/9 0.0.9.0', 'nobody asked for it: 0.0.9'],
    ],
    ['what is left', FIRST, [...LAST, 'late 3 records are left'], ['in the end 3 records are left']],
    ['an end that never came', FIRST, SEEN, ['the last life did not come to its end']],
  ])('sees %s', (_, first, last, expected) => {
    expect(violations(first, last)).toEqual(expected);
  });
});
