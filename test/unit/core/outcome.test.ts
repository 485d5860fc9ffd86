import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import type { Outcome } from '../../../src/core/outcome.js';
import {
  defer,
  dependencyDown,
  failureOf,
  fatal,
  isOutcome,
  on,
  poison,
  publishRefused,
  retry,
  retryAfter,
  skip,
  success,
  undecodable,
} from '../../../src/core/outcome.js';
import { topic } from '../../../src/core/topic.js';
import { hostileError } from './hostile-errors.js';

const every: readonly (readonly [string, Outcome])[] = [
  ['success', success()],
  ['skip', skip('not mine')],
  ['retry', retry()],
  ['retry-after', retryAfter(5)],
  ['defer', defer(5)],
  ['poison', poison('bad')],
  ['dependency-down', dependencyDown('db')],
  ['fatal', fatal('stop')],
];

describe('the brand', () => {
  it.each(every)('%s is an outcome of its kind', (kind, outcome) => {
    expect([isOutcome(outcome), outcome.kind]).toEqual([true, kind]);
  });

  it.each([
    ['an object that looks like one', { kind: 'success', messages: [] }],
    ['a copy without symbols', JSON.parse(JSON.stringify(success())) as unknown],
    ['undefined', undefined],
    ['null', null],
    ['true', true],
    ['the name of a kind', 'success'],
    ['a function that makes one', success],
    ['a promise of one', Promise.resolve(success())],
    ['an array of one', [success()]],
    ['a brand that is not true', { [Symbol.for('pulsework.outcome')]: 1, kind: 'success' }],
    ['a brand of another symbol', { [Symbol('pulsework.outcome')]: true, kind: 'success' }],
  ])('refuses %s', (_, value) => {
    expect(isOutcome(value)).toBe(false);
  });

  it('knows outcomes made by another copy of this package', () => {
    expect(isOutcome({ [Symbol.for('pulsework.outcome')]: true, kind: 'success', messages: [] })).toBe(true);
  });
});

describe('what an outcome carries', () => {
  const receipts = topic('receipts');

  it('success: its messages, in order', () => {
    const messages = [receipts.message({ n: 1 }), receipts.message({ n: 2 })];
    expect(success(...messages).messages).toEqual(messages);
  });

  it('retry: the cause of the dead letter, should it be the last', () => {
    expect(retry('busy')).toMatchObject({ failure: { reason: 'busy' }, cause: 'redeliveries-exhausted' });
  });

  it.each([
    ['retry', retry(), 'retry requested'],
    ['retryAfter', retryAfter(1), 'retry requested'],
    ['defer', defer(1), 'deferred'],
    ['dependencyDown', dependencyDown('db'), 'db is down'],
  ])('%s without a reason says so', (_, outcome, reason) => {
    expect(outcome.failure).toEqual({ reason });
  });

  it('retryAfter: the delay', () => {
    expect(retryAfter(1_500, 'busy')).toMatchObject({ delayMs: 1_500, failure: { reason: 'busy' } });
  });

  it('defer: milliseconds or a point in time', () => {
    const until = new Date(5);
    expect([defer(7).until, defer(until).until]).toEqual([7, until]);
  });

  it('dependencyDown: the dependency and when to try again', () => {
    const outcome = dependencyDown('db', { retryAfterMs: 50, reason: 'refused' });
    expect(outcome).toMatchObject({ dependency: 'db', retryAfterMs: 50, failure: { reason: 'refused' } });
  });

  it('an unreadable payload is poison with its own cause', () => {
    expect(undecodable(new Error('bad json'))).toMatchObject({ kind: 'poison', cause: 'undecodable' });
  });

  it('a refused follow-up is a failed run with its own cause', () => {
    expect(publishRefused(new Error('too large'))).toMatchObject({ kind: 'retry', cause: 'publish-refused' });
  });
});

describe('failureOf', () => {
  it('keeps a text as the reason', () => {
    expect(failureOf('no stock')).toEqual({ reason: 'no stock' });
  });

  it('keeps an error and its message', () => {
    const error = new RangeError('too far');
    expect(failureOf(error)).toEqual({ reason: 'too far', error });
  });

  it('names an error without a message by its class', () => {
    expect(failureOf(new RangeError()).reason).toBe('RangeError');
  });

  it('takes an error whose properties throw', () => {
    const error = hostileError();
    expect(failureOf(error)).toEqual({ reason: 'Error', error });
  });

  it('takes an error whose message is no text', () => {
    const error = Object.assign(new Error(), { message: { code: 5 } });
    expect(failureOf(error as never).reason).toBe('Error');
  });

  it.each([undefined, null, ''])('says so where none was given: %j', (reason) => {
    expect(failureOf(reason as never)).toEqual({ reason: 'no reason given' });
    for (const outcome of [poison, skip, fatal].map((make) => make(reason as never)))
      expect(outcome.failure).toEqual({ reason: 'no reason given' });
  });

  it.each([5, { message: 'like an error' }])('takes %j, which is neither text nor error', (reason) => {
    expect(failureOf(reason as never).reason).toMatch(/^a value that is not an Error was thrown: /);
  });
});

it('on() keeps class and outcome of a rule', () => {
  const rule = on(RangeError, poison);
  expect([rule.errorClass, rule.outcome]).toEqual([RangeError, poison]);
});

it.each([
  [
    [poison, Error],
    [
      'on(): it takes an error class first, got function poison',
      'on(): it takes a function from the error to an outcome second, such as poison, got function Error',
    ],
  ],
  [[Error, 'poison'], ['on(): it takes a function from the error to an outcome second, such as poison, got "poison"']],
  [['CardDeclined', poison], ['on(): it takes an error class first, got "CardDeclined"']],
  [[Date, poison], ['on(): it takes an error class first, got function Date']],
])('on() refuses %o at once, where the mistake is', (args, problems) => {
  const call = on as (...given: readonly unknown[]) => unknown;
  expect(() => call(...args)).toThrow(new ConfigurationError(problems));
});
