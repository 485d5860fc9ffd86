import { beforeEach, describe, expect, it } from 'vitest';
import { seconds } from '../../../src/index.js';
import type { AuditRecord } from '../../../src/plugins.js';
import { auditLog } from '../../../src/plugins.js';
import { Control, problemsOf, report } from './plugin-kit.js';

let control: Control;
let records: AuditRecord[];
beforeEach(() => {
  control = new Control();
  records = [];
});

const keep = (record: AuditRecord): void => void records.push(record);
/** A writer that takes `ms` for each record. */
const slowly = (ms: number) => async (record: AuditRecord) => {
  await new Promise<void>((resolve) => control.clock.setTimer(ms, resolve));
  keep(record);
};

describe('a record', () => {
  it('says who, what, when, the attempt, how it ended and why', async () => {
    const plugin = await control.start(auditLog({ write: keep }));
    const failure = { reason: 'card declined', error: new Error('card declined') };
    plugin.onSettled?.(report({ attempt: 2, outcome: 'poison', settlement: 'dead-letter', cause: 'poison', failure }));
    expect(records).toEqual([
      {
        settledMs: control.clock.now(),
        handler: 'billing',
        subscription: 's',
        topic: 'persistent://public/default/orders',
        messageId: '1:2:-1',
        attempt: 2,
        outcome: 'poison',
        settlement: 'dead-letter',
        strategy: undefined,
        delayMs: undefined,
        cause: 'poison',
        reason: 'card declined',
        durationMs: 3,
      },
    ]);
  });

  it('has its secrets taken out of the reason', async () => {
    const plugin = await control.start(auditLog({ write: keep, redact: [/\d{16}/] }));
    plugin.onSettled?.(report({ failure: { reason: 'card 4111111111111111 declined' } }));
    expect(records[0]?.reason).toBe('card [redacted] declined');
  });

  it('is written at once by a writer that does not wait', async () => {
    const plugin = await control.start(auditLog({ write: keep }));
    for (let attempt = 1; attempt <= 3; attempt += 1) plugin.onSettled?.(report({ attempt }));
    expect(records.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(plugin.counts).toEqual({ written: 3, failed: 0, lost: 0, queued: 0 });
  });

  it('waits for the one before it, in order', async () => {
    const plugin = await control.start(auditLog({ write: slowly(10) }));
    for (let attempt = 1; attempt <= 500; attempt += 1) plugin.onSettled?.(report({ attempt }));
    await control.clock.advanceBy(100);
    expect(records.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await control.clock.advanceBy(10_000);
    expect(records.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
    expect(plugin.counts).toEqual({ written: 500, failed: 0, lost: 0, queued: 0 });
  });
});

describe('a writer that fails', () => {
  it.each<[string, () => void | Promise<void>]>([
    ['rejects', () => Promise.reject(new Error('disk full'))],
    [
      'throws',
      (): void => {
        throw new Error('disk full');
      },
    ],
  ])('%s: costs its record only, counted and logged', async (_, fail) => {
    const write = (record: AuditRecord): void | Promise<void> => (record.attempt === 1 ? fail() : keep(record));
    const plugin = await control.start(auditLog({ write }));
    plugin.onSettled?.(report({ attempt: 1 }));
    plugin.onSettled?.(report({ attempt: 2 }));
    await control.clock.advanceBy(0);
    expect(records.map(({ attempt }) => attempt)).toEqual([2]);
    expect(plugin.counts).toEqual({ written: 1, failed: 1, lost: 0, queued: 0 });
    expect(control.linesAt('error')).toMatchObject([
      {
        message: 'audit records could not be written',
        fields: { records: 1, inAll: 1, error: new Error('disk full') },
      },
    ]);
  });

  it('each time is logged now and then, with all its failures counted', async () => {
    const plugin = await control.start(auditLog({ write: () => Promise.reject(new Error('disk full')) }));
    for (let second = 0; second < 25; second += 1) {
      plugin.onSettled?.(report());
      await control.clock.advanceBy(1_000);
    }
    await plugin.onClose?.();
    const said = control.linesAt('error').map(({ fields }) => fields['records'] as number);
    expect(said).toEqual([1, 10, 10, 4]);
  });
});

describe('a writer that is too slow', () => {
  it('loses what finds no room, loudly, and goes on', async () => {
    const plugin = await control.start(auditLog({ write: slowly(10), maxQueued: 2 }));
    for (let attempt = 1; attempt <= 5; attempt += 1) plugin.onSettled?.(report({ attempt }));
    expect(plugin.counts).toEqual({ written: 0, failed: 0, lost: 2, queued: 3 });
    expect(control.linesAt('error')).toMatchObject([
      { message: 'audit records are lost: the writer is too slow', fields: { records: 1 } },
    ]);
    await control.clock.advanceBy(100);
    plugin.onSettled?.(report({ attempt: 6 }));
    await control.clock.advanceBy(100);
    expect(records.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 6]);
  });
});

describe('closing', () => {
  it('waits until everything is written', async () => {
    const plugin = await control.start(auditLog({ write: slowly(10) }));
    for (let attempt = 1; attempt <= 20; attempt += 1) plugin.onSettled?.(report({ attempt }));
    const closing = plugin.onClose?.();
    await control.clock.advanceBy(200);
    await closing;
    expect(records).toHaveLength(20);
    expect(control.log).toEqual([]);
    expect(control.clock.pendingTimers).toEqual([]);
  });

  it('waits for no longer than flushMs, and says what is lost', async () => {
    const plugin = await control.start(auditLog({ write: () => new Promise(() => undefined), flushMs: 1_000 }));
    for (let attempt = 1; attempt <= 3; attempt += 1) plugin.onSettled?.(report({ attempt }));
    const closing = plugin.onClose?.();
    await control.clock.advanceBy(1_000);
    await closing;
    expect(plugin.counts).toEqual({ written: 0, failed: 0, lost: 3, queued: 0 });
    expect(control.linesAt('error')).toMatchObject([{ fields: { records: 3, inAll: 3 } }]);
  });

  it('waits for no longer than the runtime does, and counts each record once, also one that is written later', async () => {
    const plugin = await control.start(auditLog({ write: slowly(seconds(4)) }));
    for (let attempt = 1; attempt <= 3; attempt += 1) plugin.onSettled?.(report({ attempt }));
    const over = new AbortController();
    const closing = plugin.onClose?.(over.signal);
    await control.clock.advanceBy(seconds(1));
    over.abort();
    await closing;
    const counts = { written: 0, failed: 0, lost: 3, queued: 0 };
    expect([plugin.counts, control.clock.pendingTimers.length]).toEqual([counts, 1]);
    await control.clock.advanceBy(seconds(20));
    expect([plugin.counts, records.length]).toEqual([counts, 1]);
  });

  it('is at once where nothing waits', async () => {
    const plugin = await control.start(auditLog({ write: keep }));
    await plugin.onClose?.();
    expect(control.clock.pendingTimers).toEqual([]);
  });
});

describe('options', () => {
  it('are checked all at once', () => {
    const options = { write: 'file', maxQueued: 0, flushMs: -1, redact: 'secret', writer: 1 };
    expect(problemsOf(() => auditLog(options as never))).toEqual([
      'auditLog: unknown option "writer", did you mean "write"?',
      'auditLog: "write" must be a function, got "file"',
      'auditLog: "maxQueued" must be a positive integer, got 0',
      'auditLog: "flushMs" must be a duration of 0 ms or more (in milliseconds), got -1',
      'auditLog: "redact" must be a list of regular expressions or a function, got "secret"',
    ]);
  });

  it('that are missing are named', () => {
    expect(problemsOf(() => auditLog({} as never))).toEqual([
      'auditLog: "write" is missing; it must be a function that takes a record',
    ]);
  });
});
