// Which messages are lost, end wrongly, or run out of order.
import { describe, expect, it } from 'vitest';
import type { Job, JobKind } from '../../support/soak/job-ledger.js';
import { JobLedger } from '../../support/soak/job-ledger.js';

function job(id: number, kind: JobKind, more: Partial<Job> = {}): Job {
  return { id, kind, takesMs: 0, dueMs: 0, ...more };
}

function ledgerOf(...jobs: Job[]): JobLedger {
  const ledger = new JobLedger();
  for (const each of jobs) ledger.add(each);
  return ledger;
}

describe('JobLedger', () => {
  it.each([
    ['plain', 'handled'],
    ['flaky', 'handled'],
    ['deferred', 'handled'],
    ['follow', 'receipt'],
    ['poisoned', 'letter'],
    ['thrown', 'letter'],
  ] as const)('a %s job ends by being %s', (kind, end) => {
    const ledger = ledgerOf(job(1, kind));
    ledger.ends(job(1, kind), end);

    expect({ open: ledger.open, ended: ledger.ended, violations: ledger.violations() }).toEqual({
      open: 0,
      ended: 1,
      violations: [],
    });
  });

  it('a follow job that was handled is on its way until its receipt comes', () => {
    const ledger = ledgerOf(job(1, 'follow'));
    ledger.ends(job(1, 'follow'), 'handled');

    expect(ledger.violations()).toEqual(['1 messages are lost: follow 1']);
  });

  it('names the first of those that are lost, once', () => {
    const ledger = ledgerOf(...Array.from({ length: 7 }, (_, id) => job(id, 'plain')));

    expect(ledger.violations()).toEqual(['7 messages are lost: plain 0, plain 1, plain 2, plain 3, plain 4']);
    expect(ledger.violations()).toEqual([]);
  });

  it('counts ends beyond the first, which are no fault', () => {
    const ledger = ledgerOf(job(1, 'plain'));
    ledger.ends(job(1, 'plain'), 'handled');
    ledger.ends(job(1, 'plain'), 'handled');

    expect({ ended: ledger.ended, repeated: ledger.repeated, violations: ledger.violations() }).toEqual({
      ended: 1,
      repeated: 1,
      violations: [],
    });
  });

  it('tells of a job that became a dead letter and should not', () => {
    const ledger = ledgerOf(job(1, 'plain'));
    ledger.ends(job(1, 'plain'), 'letter');

    expect(ledger.violations()).toEqual(['a plain job ended by a letter', '1 messages are lost: plain 1']);
  });

  it('lets a key go on once the one before has succeeded, and run one again', () => {
    const ledger = new JobLedger();
    const [first, second] = [job(1, 'plain', { key: 'k', place: 1 }), job(2, 'plain', { key: 'k', place: 2 })];
    for (const each of [first, first, second, first]) {
      ledger.runs(each);
      ledger.succeeded(each);
    }

    expect(ledger.violations()).toEqual([]);
  });

  it('tells of a key whose later message overtook', () => {
    const ledger = new JobLedger();
    ledger.runs(job(2, 'plain', { key: 'k', place: 2 }));

    expect(ledger.violations()).toEqual(['number 2 of key k ran after number 0']);
  });

  it('wakes who waits for an end', async () => {
    const ledger = ledgerOf(job(1, 'plain'));
    const changed = ledger.changed();
    ledger.ends(job(1, 'plain'), 'handled');

    await expect(changed).resolves.toBeUndefined();
  });
});
