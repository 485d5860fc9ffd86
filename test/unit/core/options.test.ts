import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import { MAX_DURATION_MS, OptionChecker, days, hours, minutes, seconds } from '../../../src/core/options.js';

const KNOWN = ['concurrency', 'redelivery', 'timeoutMs', 'type'];

function problemsOf(run: (check: OptionChecker) => void, subject?: string): readonly string[] {
  const check = new OptionChecker(subject);
  run(check);
  return check.problems;
}

describe('unknown options', () => {
  it.each([
    ['conccurency', 'concurrency'],
    ['Concurrency', 'concurrency'],
    ['redelivry', 'redelivery'],
    ['timeout', 'timeoutMs'],
    ['tpye', 'type'],
  ])('%s: did you mean %s?', (key, near) => {
    const problems = problemsOf((check) => check.unknownOptions({ [key]: 1 }, KNOWN));
    expect(problems).toEqual([`unknown option "${key}", did you mean "${near}"?`]);
  });

  it('lists the known ones when none is near', () => {
    const problems = problemsOf((check) => check.unknownOptions({ colour: 1 }, KNOWN));
    expect(problems).toEqual([`unknown option "colour", known options are ${KNOWN.join(', ')}`]);
  });

  it.each(['__proto__', 'constructor', 'length'])('names %s like any other', (key) => {
    const options = JSON.parse(`{"${key}":1}`) as object;
    expect(problemsOf((check) => check.unknownOptions(options, KNOWN))[0]).toContain(`unknown option "${key}"`);
  });

  it('lists and suggests what else may stand beside them', () => {
    const named = ['handle', ...KNOWN];
    expect(problemsOf((check) => check.unknownOptions({ handler: 1, colour: 1 }, KNOWN, '', named))).toEqual([
      'unknown option "handler", did you mean "handle"?',
      `unknown option "colour", known options are ${named.join(', ')}`,
    ]);
  });

  it('says nothing of known ones', () => {
    expect(problemsOf((check) => check.unknownOptions({ type: 1, timeoutMs: undefined }, KNOWN))).toEqual([]);
  });
});

describe('values', () => {
  const accepts: readonly (readonly [string, unknown, (check: OptionChecker, value: unknown) => void])[] = [
    ['positiveInteger', 1, (check, value) => check.positiveInteger('n', value)],
    ['positiveInteger', Number.MAX_SAFE_INTEGER, (check, value) => check.positiveInteger('n', value)],
    ['durationMs', 0, (check, value) => check.durationMs('n', value)],
    ['durationMs', 0.5, (check, value) => check.durationMs('n', value)],
    ['durationMs', MAX_DURATION_MS, (check, value) => check.durationMs('n', value)],
    ['infinite durationMs', Infinity, (check, value) => check.durationMs('n', value, { infinite: true })],
    ['oneOf', 'a', (check, value) => check.oneOf('n', value, ['a', 'b'])],
    ['nonEmptyString', 'a', (check, value) => check.nonEmptyString('n', value)],
    ['function', () => 1, (check, value) => check.function('n', value)],
    ['boolean', false, (check, value) => check.boolean('n', value)],
  ];
  it.each(accepts)('%s takes %s', (_, value, run) => {
    expect(problemsOf((check) => run(check, value))).toEqual([]);
  });

  it.each(accepts)('%s takes undefined as absent', (_, __, run) => {
    expect(problemsOf((check) => run(check, undefined))).toEqual([]);
  });

  it.each([0, -1, 1.5, NaN, Infinity, '5', null, 2 ** 53])('a positive integer is not %s', (value) => {
    const [problem] = problemsOf((check) => check.positiveInteger('concurrency', value));
    expect(problem).toMatch(/^"concurrency" must be a positive integer, got /);
  });

  it.each([-1, NaN, Infinity, '5', null, MAX_DURATION_MS + 1])('a duration is not %s', (value) => {
    const [problem] = problemsOf((check) => check.durationMs('timeoutMs', value));
    expect(problem).toMatch(/^"timeoutMs" must be a duration of 0 ms or more \(in milliseconds\), got /);
  });

  it('a duration keeps its lower limit', () => {
    const [problem] = problemsOf((check) => check.durationMs('timeoutMs', 0, { minMs: 1 }));
    expect(problem).toBe('"timeoutMs" must be a duration of at least 1 ms (in milliseconds), got 0');
  });

  it.each([
    ['oneOf', '"type" must be one of a, b, got "c"', (check: OptionChecker) => check.oneOf('type', 'c', ['a', 'b'])],
    [
      'nonEmptyString',
      '"x" must be a text that is not empty, got " "',
      (check: OptionChecker) => check.nonEmptyString('x', ' '),
    ],
    [
      'function with a hint',
      '"x" must be a function such as f(5), got 5',
      (check: OptionChecker) => check.function('x', 5, 'f(5)'),
    ],
    ['function', '"x" must be a function, got an array of 1', (check: OptionChecker) => check.function('x', [1])],
    ['boolean', '"x" must be true or false, got "yes"', (check: OptionChecker) => check.boolean('x', 'yes')],
  ])('%s says %s', (_, problem, run) => {
    expect(problemsOf(run)).toEqual([problem]);
  });

  it.each([undefined, null, 5, 'a', []])('an options object is not %j', (value) => {
    const [problem] = problemsOf((check) => void check.object('redelivery', value));
    expect(problem).toMatch(/^"redelivery" must be an object, got /);
  });
});

describe('required fields', () => {
  const fields = { path: 'the path of a file', ttlMs: 'a duration' };

  it('that are absent or undefined are missing', () => {
    expect(problemsOf((check) => check.required({ path: undefined }, fields, 'store.'))).toEqual([
      '"store.path" is missing; it must be the path of a file',
      '"store.ttlMs" is missing; it must be a duration',
    ]);
  });

  it('that are there are for other checks, whatever they are', () => {
    expect(problemsOf((check) => check.required({ path: null, ttlMs: 0 }, fields))).toEqual([]);
  });
});

describe('problems', () => {
  it('are thrown all at once, each naming the subject', () => {
    const check = new OptionChecker('handler "Billing.charge"');
    check.positiveInteger('concurrency', -1);
    check.unknownOptions({ conccurency: 1 }, KNOWN);
    expect(() => check.throwIfAny()).toThrow(
      new ConfigurationError([
        'handler "Billing.charge": "concurrency" must be a positive integer, got -1',
        'handler "Billing.charge": unknown option "conccurency", did you mean "concurrency"?',
      ]),
    );
  });

  it('are none when everything is right', () => {
    expect(() => new OptionChecker().throwIfAny()).not.toThrow();
  });
});

it('durations are milliseconds', () => {
  expect([seconds(2), minutes(2), hours(2), days(2)]).toEqual([2_000, 120_000, 7_200_000, 172_800_000]);
});
