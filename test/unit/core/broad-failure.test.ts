// The delivery pause as a state machine without time, against a model that remembers everything (K-53).
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BroadFailure, failedOf } from '../../../src/core/broad-failure.js';
import type { DeliveryPauseOptions, DeliveryPausePolicy } from '../../../src/core/delivery-pause.js';
import { DEFAULT_DELIVERY_PAUSE, checkDeliveryPause, resolveDeliveryPause } from '../../../src/core/delivery-pause.js';
import { OptionChecker } from '../../../src/core/options.js';
import { defer, dependencyDown, fatal, poison, retry, retryAfter, skip, success } from '../../../src/core/outcome.js';
import type { Outcome } from '../../../src/core/outcome.js';
import { settlementFor } from '../../../src/core/settlement.js';
import { settlementFacts } from '../../support/settlement-facts.js';

function machine(options: DeliveryPauseOptions = {}): BroadFailure {
  return new BroadFailure(resolveDeliveryPause({ windowSize: 4, ...options }));
}

function add(failure: BroadFailure, results: string): void {
  for (const result of results) failure.add(result === '-');
}

describe('a broad failure (K-53)', () => {
  it('is off by default in all its numbers: window 100, ratio 1, pauses of 1 s to 60 s, doubling', () => {
    expect(resolveDeliveryPause({})).toEqual({
      windowSize: 100,
      failureRatio: 1,
      initialDelayMs: 1_000,
      maxDelayMs: 60_000,
      multiplier: 2,
    });
    expect(resolveDeliveryPause({ windowSize: undefined, multiplier: 3 })).toEqual({
      ...DEFAULT_DELIVERY_PAUSE,
      multiplier: 3,
    });
  });

  it.each([
    ['only once the window is full', '---', 'closed'],
    ['when all of the window failed', '----', 'open'],
    ['by the newest results only', '++----', 'open'],
    ['not while one of the newest went well', '---+---', 'closed'],
  ])('opens %s', (_, results, state) => {
    const failure = machine();
    add(failure, results);
    expect(failure.state).toBe(state);
  });

  it.each([
    [0.5, '-+-+', 'open'],
    [0.5, '+++--+', 'open'],
    [0.51, '-+-+', 'closed'],
  ])('opens at a ratio of %d for %s: %s', (failureRatio, results, state) => {
    const failure = machine({ failureRatio });
    add(failure, results);
    expect(failure.state).toBe(state);
  });

  it('opens at the ratio itself, where a product would miss it by rounding', () => {
    const failure = machine({ windowSize: 100, failureRatio: 0.07 });
    add(failure, '-'.repeat(7) + '+'.repeat(93));
    expect(failure.state).toBe('open');
  });

  it('takes no result while it is open: those say nothing of later', () => {
    const failure = machine();
    add(failure, '----');
    add(failure, '++++++');
    failure.delayOver();
    expect([failure.state, failure.missing]).toEqual(['half-open', 4]);
  });

  it('opens again after a window that failed, each time longer up to the maximum, and counts', () => {
    const failure = machine({ initialDelayMs: 10, maxDelayMs: 60, multiplier: 3 });
    const delays: number[] = [];
    add(failure, '----');
    for (let round = 0; round < 4; round++) {
      delays.push(failure.delayMs);
      failure.delayOver();
      add(failure, '---');
      expect(failure.state).toBe('half-open');
      add(failure, '-');
      expect(failure.state).toBe('open');
    }
    expect(delays).toEqual([10, 30, 60, 60]);
    expect(failure.opened).toBe(5);
  });

  it('closes after a window below the ratio; the delay begins anew, and so does the window', () => {
    const failure = machine({ initialDelayMs: 10 });
    add(failure, '----');
    failure.delayOver();
    add(failure, '----');
    failure.delayOver();
    add(failure, '---+');
    expect([failure.state, failure.delayMs, failure.missing]).toEqual(['closed', 0, 4]);
    add(failure, '----');
    expect([failure.state, failure.delayMs, failure.opened]).toEqual(['open', 10, 3]);
  });

  it('is judged early only half-open, and only by results', () => {
    const failure = machine();
    failure.judge();
    failure.delayOver();
    expect(failure.state).toBe('closed');
    add(failure, '----');
    failure.judge();
    expect(failure.state).toBe('open');
    failure.delayOver();
    failure.judge();
    expect(failure.state).toBe('half-open');
    add(failure, '-');
    failure.judge();
    expect([failure.state, failure.delayMs]).toEqual(['open', 2_000]);
  });

  it('does what a model says that keeps all results', () => {
    const policies = fc.record({
      windowSize: fc.integer({ min: 1, max: 8 }),
      failureRatio: fc.constantFrom(0.1, 0.25, 0.5, 0.75, 1),
      initialDelayMs: fc.integer({ min: 1, max: 50 }),
      maxDelayMs: fc.integer({ min: 50, max: 500 }),
      multiplier: fc.constantFrom(1, 1.5, 2, 10),
    });
    const steps = fc.array(fc.constantFrom('ok', 'failed', 'failed', 'failed', 'delay over', 'judge'), {
      maxLength: 120,
    });
    fc.assert(
      fc.property(policies, steps, (policy, program) => {
        const failure = new BroadFailure(policy);
        const model = new Model(policy);
        for (const step of program) {
          if (step === 'delay over') failure.delayOver();
          else if (step === 'judge') failure.judge();
          else failure.add(step === 'failed');
          model.step(step);
          const { state, delayMs, opened, missing } = failure;
          expect({ state, delayMs, opened, missing }).toEqual(model.facts());
        }
      }),
      { numRuns: 500, seed: 53 },
    );
  });
});

/** Written from K-53 alone: it slices its memory where the machine keeps a ring. */
class Model {
  readonly #policy: DeliveryPausePolicy;
  #state = 'closed';
  #delays: number[] = [];
  #since: boolean[] = [];
  #opened = 0;

  constructor(policy: DeliveryPausePolicy) {
    this.#policy = policy;
  }

  step(step: string): void {
    if (step === 'delay over') {
      if (this.#state === 'open') this.#enter('half-open');
      return;
    }
    if (step !== 'judge' && this.#state !== 'open') this.#since.push(step === 'failed');
    const { windowSize, failureRatio } = this.#policy;
    const window = this.#since.slice(-windowSize);
    const full = window.length === windowSize;
    const broad = window.filter(Boolean).length / window.length >= failureRatio;
    if (this.#state === 'closed' && full && broad) this.#enterOpen();
    const decided = full || (step === 'judge' && window.length > 0);
    if (this.#state !== 'half-open' || !decided) return;
    if (broad) return this.#enterOpen();
    this.#delays = [];
    this.#enter('closed');
  }

  facts(): object {
    const { windowSize } = this.#policy;
    const missing = windowSize - Math.min(windowSize, this.#since.length);
    return { state: this.#state, delayMs: this.#delays.at(-1) ?? 0, opened: this.#opened, missing };
  }

  #enterOpen(): void {
    const { initialDelayMs, maxDelayMs, multiplier } = this.#policy;
    const last = this.#delays.at(-1);
    this.#delays.push(last === undefined ? initialDelayMs : Math.min(maxDelayMs, last * multiplier));
    this.#enter('open');
  }

  #enter(state: string): void {
    if (state === 'open') this.#opened++;
    this.#state = state;
    this.#since = [];
  }
}

describe('a settlement says of the application (K-53: samples are what it acknowledged or failed)', () => {
  it.each<[string, Outcome, number, boolean | undefined]>([
    ['success', success(), 1, false],
    ['skip', skip('not mine'), 1, false],
    ['retry', retry(), 1, true],
    ['retryAfter', retryAfter(1), 1, true],
    ['the last retry', retry(), 10, true],
    ['poison', poison('bad'), 1, true],
    ['defer', defer(1), 1, undefined],
    ['dependencyDown', dependencyDown('bank'), 1, undefined],
    ['fatal', fatal('stop'), 1, undefined],
  ])('after %s: failed %#', (_, outcome, attempt, failed) => {
    expect(failedOf(settlementFor(outcome, settlementFacts({ attempt })))).toBe(failed);
  });

  it('a dead letter that is only skipped or kept is a failure too, and so is what blocks its key', () => {
    for (const deadLetter of ['skip', 'block', 'publish'] as const)
      expect(failedOf(settlementFor(poison('bad'), settlementFacts({ deadLetter })))).toBe(true);
    expect(failedOf(settlementFor(poison('bad'), settlementFacts({ keyBlocks: true })))).toBe(true);
  });
});

it('all problems of the option are named at once', () => {
  const check = new OptionChecker();
  checkDeliveryPause(
    { windowSize: 0, failureRatio: 0, initialDelayMs: 100, maxDelayMs: 50, multiplier: 0.5, windowSise: 1 },
    check,
  );
  checkDeliveryPause(true, check);
  checkDeliveryPause({ failureRatio: 1.1, multiplier: Infinity, initialDelayMs: 0 }, check);
  checkDeliveryPause({}, check);
  expect(check.problems).toEqual([
    'unknown option "deliveryPause.windowSise", did you mean "windowSize"?',
    '"deliveryPause.windowSize" must be a positive integer, got 0',
    '"deliveryPause.failureRatio" must be above 0 and at most 1, got 0',
    '"deliveryPause.multiplier" must be a number of 1 or more, got 0.5',
    '"deliveryPause.maxDelayMs" must not be below "deliveryPause.initialDelayMs", got 50 and 100',
    '"deliveryPause" must be an object such as {}, which takes the defaults, got true',
    '"deliveryPause.failureRatio" must be above 0 and at most 1, got 1.1',
    '"deliveryPause.multiplier" must be a number of 1 or more, got Infinity',
    '"deliveryPause.initialDelayMs" must be a duration of at least 1 ms (in milliseconds), got 0',
  ]);
});
