import { describe, expect, it, vi } from 'vitest';
import { fixedBackoff } from '../../../src/core/backoff.js';
import type { Outcome } from '../../../src/core/outcome.js';
import {
  defer,
  dependencyDown,
  fatal,
  outcomeProblem,
  poison,
  publishRefused,
  retry,
  retryAfter,
  skip,
  success,
  undecodable,
} from '../../../src/core/outcome.js';
import type { Settlement, SettlementFacts } from '../../../src/core/settlement.js';
import { probeDelayMs, redeliveryStrategy, settlementFor } from '../../../src/core/settlement.js';
import type { Ordering } from '../../../src/core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { topic } from '../../../src/core/topic.js';
import { settlementFacts } from '../../support/settlement-facts.js';

const NOW = Date.UTC(2026, 0, 1);
const ORDERINGS: readonly Ordering[] = ['none', 'key', 'partition'];
const MAX_DELIVERIES = 3;

function facts(more: Partial<SettlementFacts> = {}): SettlementFacts {
  const policy = { maxDeliveries: MAX_DELIVERIES, backoff: (redeliveries: number) => 100 * (redeliveries + 1) };
  return settlementFacts({ policy, now: NOW, ...more });
}

/** A settlement in one line, so that the whole table can be read. */
function shown(settlement: Settlement): string {
  if (settlement.kind === 'acknowledge') return `acknowledge, ${settlement.messages.length} messages`;
  if (settlement.kind === 'dead-letter') return `dead-letter ${settlement.cause}`;
  if (settlement.kind === 'leave') return 'leave';
  if (settlement.kind !== 'redeliver') return `${settlement.kind} ${settlement.cause}`;
  const spends = settlement.spendsAttempt ? 'spends' : 'free';
  const outage = settlement.outage === undefined ? '' : ` outage ${settlement.outage.dependency}`;
  return `redeliver ${settlement.strategy} ${settlement.delayMs} ms ${spends}${outage}`;
}

const receipts = topic('receipts');
const bad = new Error('bad');

/** Outcome, and what follows on attempt 1, 2 and 3 of 3; `*` stands for the strategy of type and ordering. */
const TABLE: readonly (readonly [string, Outcome, string, string, string])[] = [
  ['success()', success(), ...same('acknowledge, 0 messages')],
  ['success(message)', success(receipts.message(1)), ...same('acknowledge, 1 messages')],
  ['skip', skip('not mine'), ...same('acknowledge, 0 messages')],
  ['retry', retry(), 'redeliver * 100 ms spends', 'redeliver * 200 ms spends', 'dead-letter redeliveries-exhausted'],
  [
    'a refused follow-up',
    publishRefused(bad),
    'redeliver * 100 ms spends',
    'redeliver * 200 ms spends',
    'dead-letter publish-refused',
  ],
  [
    'retryAfter(7)',
    retryAfter(7),
    'redeliver * 7 ms spends',
    'redeliver * 7 ms spends',
    'dead-letter redeliveries-exhausted',
  ],
  ['defer(7)', defer(7), ...same('redeliver local 7 ms free')],
  ['defer(a Date to come)', defer(new Date(NOW + 9)), ...same('redeliver local 9 ms free')],
  ['defer(a Date gone by)', defer(new Date(NOW - 9)), ...same('redeliver local 0 ms free')],
  ['poison', poison('bad'), ...same('dead-letter poison')],
  ['an undecodable payload', undecodable(bad), ...same('dead-letter undecodable')],
  ['dependencyDown', dependencyDown('db'), ...same('redeliver local 1000 ms free outage db')],
  [
    'dependencyDown, known until when',
    dependencyDown('db', { retryAfterMs: 40 }),
    ...same('redeliver local 40 ms free outage db'),
  ],
  ['fatal', fatal('stop'), ...same('leave')],
];

function same(settlement: string): [string, string, string] {
  return [settlement, settlement, settlement];
}

describe('every outcome, on every type, with every ordering', () => {
  const cases = TABLE.flatMap(([name, outcome, ...settlements]) =>
    SUBSCRIPTION_TYPES.flatMap((type) => ORDERINGS.map((ordering) => ({ name, outcome, type, ordering, settlements }))),
  );
  it.each(cases)('$name on $type, ordering $ordering: $settlements', ({ outcome, type, ordering, settlements }) => {
    const strategy = (type === 'shared' || type === 'key-shared') && ordering === 'none' ? 'hold' : 'local';
    const expected = settlements.map((settlement) => settlement.replace('*', strategy));
    const actual = [1, 2, 3].map((attempt) => shown(settlementFor(outcome, facts({ type, ordering, attempt }))));
    expect(actual).toEqual(expected);
  });
});

describe('failed runs', () => {
  it('are dead letters past the last attempt too', () => {
    expect(shown(settlementFor(retry(), facts({ attempt: 9 })))).toBe('dead-letter redeliveries-exhausted');
  });

  it('are dead letters at once where one delivery is all', () => {
    const policy = { maxDeliveries: 1, backoff: fixedBackoff(1) };
    expect(settlementFor(retry(), facts({ policy })).kind).toBe('dead-letter');
  });

  it('keep the failure, whatever follows', () => {
    for (const attempt of [1, MAX_DELIVERIES]) {
      expect(settlementFor(retry(bad), facts({ attempt }))).toMatchObject({ failure: { reason: 'bad', error: bad } });
    }
  });

  it('ask the backoff once for a retry, and not at all on the last attempt or for retryAfter', () => {
    const backoff = vi.fn(() => 5);
    const policy = { maxDeliveries: 2, backoff };
    settlementFor(retry(), facts({ policy, attempt: 1 }));
    settlementFor(retry(), facts({ policy, attempt: 2 }));
    settlementFor(retryAfter(9), facts({ policy, attempt: 1 }));
    expect(backoff).toHaveBeenCalledOnce();
  });

  it('pass on that the policy failed', () => {
    const policy = { maxDeliveries: 2, backoff: () => NaN };
    expect(() => settlementFor(retry(), facts({ policy }))).toThrow(expect.objectContaining({ code: 'POLICY_FAILED' }));
  });
});

describe('a retry with a backoff of its own', () => {
  it('waits by that, not by the policy', () => {
    const outcome = retry('busy', { backoff: (redeliveries) => 7 * (redeliveries + 1) });
    expect(shown(settlementFor(outcome, facts({ attempt: 2 })))).toBe('redeliver hold 14 ms spends');
  });

  it('that gives no delay is a policy that failed', () => {
    expect(() => settlementFor(retry('busy', { backoff: () => -1 }), facts())).toThrow(/a backoff must give/);
  });
});

describe('the strategy', () => {
  it.each([
    ['shared', 'none', 'hold'],
    ['key-shared', 'none', 'hold'],
    ['key-shared', 'key', 'local'],
    ['shared', 'partition', 'local'],
    // A redelivery request sends the whole subscription again there (N-31).
    ['exclusive', 'none', 'local'],
    ['failover', 'none', 'local'],
  ] as const)('on %s with ordering %s is %s', (type, ordering, strategy) => {
    expect(redeliveryStrategy(3_600_000, facts({ type, ordering }))).toBe(strategy);
  });

  it('of what the broker does not send again is in place', () => {
    expect(redeliveryStrategy(3_600_000, facts({ comesAgain: false }))).toBe('local');
  });

  it.each([
    ['shared', 600_000, false, 'hold'],
    ['shared', 600_001, false, 'republish'],
    ['key-shared', 60_000, false, 'hold'],
    ['key-shared', 60_001, false, 'republish'],
    ['shared', 1, true, 'republish'],
  ] as const)('on %s with a retry letter topic, %i ms and full: %s, is %s', (type, delayMs, heldFull, strategy) => {
    expect(redeliveryStrategy(delayMs, facts({ type, republishes: true, heldFull }))).toBe(strategy);
  });

  it('of a long defer is republish where that is allowed, and in place elsewhere', () => {
    expect(shown(settlementFor(defer(700_000), facts({ republishes: true })))).toBe(
      'redeliver republish 700000 ms free',
    );
    expect(shown(settlementFor(defer(700_000), facts()))).toBe('redeliver local 700000 ms free');
  });
});

describe('probes of a dependency that is down', () => {
  it.each([
    [1_000, 0, 1_000],
    [1_000, 1, 2_000],
    [1_000, 5, 32_000],
    [1_000, 6, 60_000],
    [1_000, 5_000, 60_000],
    [0, 0, 1],
    [0, 5, 32],
    [0, 2_000, 60_000],
    [90_000, 3, 90_000],
  ])('asked to wait %i ms, probe %i waits %i ms', (delayMs, probes, waits) => {
    expect(probeDelayMs(delayMs, probes)).toBe(waits);
  });
});

describe('what is wrong with an outcome', () => {
  it.each(TABLE.map(([name, outcome]) => [name, outcome] as const))('%s: nothing', (_, outcome) => {
    expect(outcomeProblem(outcome)).toBeUndefined();
  });

  it.each([
    ['a negative delay', retryAfter(-1), 'retryAfter() takes milliseconds of 0 or more, such as seconds(30), got -1'],
    [
      'a delay that is not a number',
      retryAfter(NaN),
      'retryAfter() takes milliseconds of 0 or more, such as seconds(30), got NaN',
    ],
    [
      'a delay that is a text',
      retryAfter('5' as never),
      'retryAfter() takes milliseconds of 0 or more, such as seconds(30), got "5"',
    ],
    ['a negative deferral', defer(-1), 'defer() takes milliseconds of 0 or more or a valid Date, got -1'],
    [
      'an invalid Date',
      defer(new Date(NaN)),
      'defer() takes milliseconds of 0 or more or a valid Date, got an invalid Date',
    ],
    [
      'a negative outage',
      dependencyDown('db', { retryAfterMs: -1 }),
      'dependencyDown() takes "retryAfterMs" of 0 or more, got -1',
    ],
    ['a dependency without a name', dependencyDown(''), 'dependencyDown() takes the name of what is down, got ""'],
    [
      'a misspelt option of an outage',
      dependencyDown('db', { retryAfter: 5 } as never),
      'dependencyDown(): unknown option "retryAfter", did you mean "retryAfterMs"?',
    ],
    [
      'a delay in place of the options of an outage',
      dependencyDown('db', 5 as never),
      'dependencyDown(): "options" must be an object such as { retryAfterMs, reason, scope }, got 5',
    ],
    ['no options of an outage', dependencyDown('db', null as never), /must be an object such as .*, got null/],
    [
      'a misspelt option of a retry',
      retry('x', { backof: fixedBackoff(5) } as never),
      'retry(): unknown option "backof", did you mean "backoff"?',
    ],
    [
      'a backoff that is a number',
      retry('x', { backoff: 5 as never }),
      'retry() takes a "backoff" such as fixedBackoff(5), got 5',
    ],
  ])('%s is named', (_, outcome, problem) => {
    expect(outcomeProblem(outcome)).toMatch(problem);
  });
});
