import { describe, expect, it } from 'vitest';
import {
  causeChain,
  errorMessage,
  errorName,
  errorStack,
  failureFingerprint,
} from '../../../src/core/failure-report.js';
import { cyclicError, errorWithFrames, hostileError } from './hostile-errors.js';

function fingerprint(...frames: readonly string[]): string {
  const error = errorWithFrames('CardDeclined', 'card 5 declined', ...frames);
  return failureFingerprint({ reason: error.message, error });
}

describe('the fingerprint', () => {
  const usual = 'CardDeclined at Billing.charge (billing.ts)';

  it.each([
    ['a path', 'Billing.charge (/srv/app/src/billing.ts:10:5)'],
    ['another path and line', 'Billing.charge (/opt/build/src/billing.ts:99:1)'],
    ['a file URL', 'Billing.charge (file:///srv/app/src/billing.ts:10:5)'],
    ['a file URL with a query', 'Billing.charge (file:///srv/app/src/billing.ts?t=17:10:5)'],
    ['a Windows path', 'Billing.charge (C:\\app\\src\\billing.ts:10:5)'],
    ['an async frame', 'async Billing.charge (/srv/app/src/billing.ts:10:5)'],
  ])('is the same for the same fault with %s', (_, frame) => {
    expect(fingerprint(frame)).toBe(usual);
  });

  it('differs by function and by file', () => {
    const others = ['Billing.refund (/srv/billing.ts:1:1)', 'Billing.charge (/srv/accounts.ts:1:1)'];
    expect(new Set([usual, ...others.map((frame) => fingerprint(frame))]).size).toBe(3);
  });

  it.each([
    'node:internal/process/task_queues:95:5',
    'process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
    'Gateway.post (/srv/app/node_modules/gateway/index.js:1:1)',
    'Array.map (<anonymous>)',
    'async Promise.all (index 0)',
    'JSON.parse (native)',
  ])('passes over %s', (foreign) => {
    expect(fingerprint(foreign, 'Billing.charge (/srv/billing.ts:1:1)')).toBe(usual);
  });

  it('takes a frame without a function name', () => {
    expect(fingerprint('/srv/app/main.ts:3:9')).toBe('CardDeclined at main.ts');
  });

  it('leaves numbers and ids out of function names', () => {
    expect(fingerprint('step12 (/srv/a.ts:1:1)')).toBe(fingerprint('step7 (/srv/a.ts:1:1)'));
  });

  it('falls back to the message, without numbers and ids, when no frame is of the user', () => {
    expect(fingerprint('node:internal/timers:1:1')).toBe('CardDeclined: card # declined');
  });

  it.each([
    'order 4711 not found in 12 shards',
    'order 0 not found in 3 shards',
    'order 7f3c9a2b1d not found in 1 shards',
    'order 6ba7b810-9dad-11d1-80b4-00c04fd430c8 not found in 9 shards',
  ])('of the reason %j has no numbers and ids', (reason) => {
    expect(failureFingerprint({ reason })).toBe('order # not found in # shards');
  });

  it('keeps words that consist of hexadecimal letters', () => {
    expect(failureFingerprint({ reason: 'defaced facade effaced' })).toBe('defaced facade effaced');
  });

  it('is the same for two errors thrown at the same place', () => {
    const thrown = [1, 2].map((n) => new RangeError(`no seat ${n}`));
    const [first, second] = thrown.map((error) => failureFingerprint({ reason: error.message, error }));
    expect(first).toBe(second);
  });

  it('exists for an error whose properties throw', () => {
    expect(failureFingerprint({ reason: 'x', error: hostileError() })).toBe('Error: ');
  });
});

describe('the chain of causes', () => {
  it('is empty without a cause', () => {
    expect(causeChain(new Error('alone'))).toBe('');
  });

  it('goes from the outermost to the innermost', () => {
    const inner = new RangeError('refused', { cause: 'ECONNREFUSED' });
    const error = new Error('outer', { cause: new TypeError('query failed', { cause: inner }) });
    expect(causeChain(error)).toBe('TypeError: query failed <- RangeError: refused <- "ECONNREFUSED"');
  });

  it('ends when the chain is a circle', () => {
    expect(causeChain(cyclicError()).split(' <- ')).toHaveLength(10);
  });

  it('is empty when the cause cannot be read', () => {
    expect(causeChain(hostileError())).toBe('');
  });

  it('shows a cause whose properties throw', () => {
    expect(causeChain(new Error('outer', { cause: hostileError() }))).toBe('Error: ');
  });
});

describe('an error as text', () => {
  it('has name, message and stack', () => {
    const error = errorWithFrames('CardDeclined', 'no', 'f (/a.ts:1:1)');
    expect([errorName(error), errorMessage(error), errorStack(error)]).toEqual([
      'CardDeclined',
      'no',
      'CardDeclined: no\n    at f (/a.ts:1:1)',
    ]);
  });

  it('has stand-ins where the properties throw', () => {
    const error = hostileError();
    expect([errorName(error), errorMessage(error), errorStack(error)]).toEqual(['Error', '', '']);
  });

  it('has stand-ins where the properties are no text', () => {
    const error = Object.assign(new Error(), { name: 5, message: {}, stack: null });
    expect([errorName(error), errorMessage(error), errorStack(error)]).toEqual(['Error', '', '']);
  });
});
