import { describe, expect, it } from 'vitest';
import {
  ConfigurationError,
  PulseworkError,
  TransportError,
  describeValue,
  isRefusedForGood,
  toError,
} from '../../../src/core/errors.js';

describe('errors', () => {
  it('keep code and cause', () => {
    const cause = new Error('deeper');
    const error = new PulseworkError('CALL_TIMED_OUT', 'no answer', { cause });
    expect([error.code, error.cause, error.name]).toEqual(['CALL_TIMED_OUT', cause, 'PulseworkError']);
  });

  it('have no cause where none was given', () => {
    expect('cause' in new PulseworkError('CALL_TIMED_OUT', 'no answer')).toBe(false);
  });

  it('of configuration say one problem as it is', () => {
    expect(new ConfigurationError(['"a" is wrong']).message).toBe('"a" is wrong');
  });

  it('of configuration list several problems', () => {
    expect(new ConfigurationError(['a', 'b']).message).toBe('2 configuration problems:\n- a\n- b');
  });
});

describe('refused for good', () => {
  it.each([
    ['a transport error that says so', new TransportError('MESSAGE_TOO_LARGE', '', { retriable: false }), true],
    ['a transport error that can pass', new TransportError('CONNECTION_LOST', '', { retriable: true }), false],
    ['a refused publish', new PulseworkError('PUBLISH_REFUSED', ''), true],
    ['what was given', new ConfigurationError(['x']), true],
    ['another error of the library', new PulseworkError('CALL_TIMED_OUT', ''), false],
    ['any other error', new Error(), false],
    ['no error at all', undefined, false],
  ])('%s: %#', (_, error, refused) => {
    expect(isRefusedForGood(error)).toBe(refused);
  });
});

describe('what was thrown', () => {
  it('stays itself when it is an Error', () => {
    const error = new RangeError('x');
    expect(toError(error)).toBe(error);
  });

  it('is kept as the cause when it is not', () => {
    const error = toError({ code: 5 });
    expect([error.message, error.cause]).toEqual(['a value that is not an Error was thrown: an object', { code: 5 }]);
  });
});

describe('values as text', () => {
  it.each([
    ['text', '"text"'],
    [5, '5'],
    [NaN, 'NaN'],
    [10n, '10'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    [[1, 2], 'an array of 2'],
    [{}, 'an object'],
    [Object.create(null), 'an object'],
    [new Map(), 'an instance of Map'],
    [describeValue, 'function describeValue'],
    [
      (
        () => () =>
          1
      )(),
      'a function',
    ],
  ])('%s is shown as %s', (value, text) => {
    expect(describeValue(value)).toBe(text);
  });

  it('are never longer than 80 characters', () => {
    expect(describeValue('x'.repeat(1_000))).toHaveLength(80);
  });

  it('are shown even when they throw on every touch', () => {
    const hostile = new Proxy({}, { get: () => { throw new Error('hands off'); } }); // prettier-ignore
    expect(describeValue(hostile)).toBe('a value that cannot be shown');
  });
});
