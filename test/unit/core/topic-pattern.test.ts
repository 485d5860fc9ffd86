// Which topics a pattern means, and what of it a broker may be asked.
import { describe, expect, it } from 'vitest';
import { takesFrom, topicPattern } from '../../../src/core/topic-pattern.js';
import type { PatternDomain, TopicPattern } from '../../../src/core/topic-pattern.js';

function patternOf(pattern: string | RegExp, domain?: PatternDomain): TopicPattern {
  const parsed = topicPattern(pattern, 'billing', domain);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

const full = (local: string): string => `persistent://public/default/${local}`;

describe('a pattern matches', () => {
  it.each([
    ['orders-.*', full('orders-eu'), true],
    ['orders-.*', full('my-orders-eu'), false],
    ['orders', full('orders-eu'), false],
    ['orders-.*', full('orders-eu-partition-3'), true],
    ['orders-eu', full('orders-eu-partition-3'), true],
    ['acme/prod/orders-.*', 'persistent://acme/prod/orders-eu', true],
    ['acme/prod/orders-.*', 'persistent://acme/prod2/orders-eu', false],
    ['persistent://acme/prod/.*', 'persistent://acme/prod/orders', true],
    ['a|b', full('b'), true],
    ['a|b', full('bc'), false],
    [/orders-(?!eu)/, full('orders-us'), false],
    [/^orders-(?!eu).*$/, full('orders-us'), true],
    [/^orders-(?!eu).*$/, full('orders-eu'), false],
    [/persistent:\/\/acme\/prod\/ORDERS/i, 'persistent://acme/prod/orders', true],
    [/orders/g, full('orders'), true],
  ])('%s: %s: %s', (pattern, topic, expected) => {
    const parsed = patternOf(pattern);

    expect([parsed.matches(topic), parsed.matches(topic)]).toEqual([expected, expected]);
  });
});

describe('a pattern never means', () => {
  it.each([
    ['a topic that the broker keeps for itself', full('__change_events')],
    ['the log of pending acknowledgements of a transaction', full('orders-billing__transaction_pending_ack')],
    ['the retry topic of its own subscription', full('orders-billing-RETRY')],
    ['the dead letter topic of its own subscription', full('orders-billing-DLQ')],
    ['a partition of it', full('orders-billing-DLQ-partition-1')],
  ])('%s', (_, topic) => {
    expect(patternOf('.*').matches(topic)).toBe(false);
  });

  it('topics that are not stored, unless they are asked for', () => {
    const topic = 'non-persistent://public/default/orders';

    expect(patternOf('.*').matches(topic)).toBe(false);
    expect(patternOf('.*', 'all').matches(topic)).toBe(true);
    expect(patternOf('non-persistent://public/default/.*').matches(topic)).toBe(true);
    expect(patternOf('.*', 'non-persistent').matches(full('orders'))).toBe(false);
  });

  it('means the dead letters of other subscriptions', () => {
    expect(patternOf('.*').matches(full('orders-shipping-DLQ'))).toBe(true);
  });
});

describe('a broker is asked', () => {
  const all = full('.*');

  it.each([
    ['orders-.*', [full('orders-.*'), all]],
    ['a|b', [full('(?:a|b)'), all]],
    ['.*', [all]],
    ['orders-[a-z0-9]{2,3}', [full('orders-[a-z0-9]{2,3}'), all]],
    ['orders\\.eu', [full('orders\\.eu'), all]],
    ['orders-(?!eu).*', [all]],
    ['(?<region>eu)', [all]],
    ['\\bx', [all]],
    ['x\\x41', [all]],
    [/orders/i, [all]],
  ])('for %s only with what every engine reads alike', (pattern, forBroker) => {
    expect(patternOf(pattern).forBroker).toEqual(forBroker);
  });
});

it.each(['', 'a/b', 'persistent://orders', 'acme/.*/orders', '(', 'ten*nt/ns/x'])(
  'the pattern "%s" is refused',
  (pattern) => {
    expect(topicPattern(pattern, 's', undefined)).toEqual(expect.any(String));
  },
);

it('a pattern that names one domain and asks for the other is refused', () => {
  expect(topicPattern('non-persistent://a/b/c', 's', 'persistent')).toMatch('"patternDomain" is persistent');
});

it('the pattern of a subscription is read once, however often it is asked about', () => {
  let reads = 0;
  const pattern = Object.defineProperty(/orders-.*/, 'source', { get: () => ((reads += 1), 'orders-.*') });
  const options = { type: 'shared', initialPosition: 'earliest', prefetch: 1, consumerName: 'c' } as const;
  const spec = { ...options, subscription: 's', topics: [], pattern };

  const taken = ['orders-eu', 'orders-us', 'other', 'orders-eu'].map((name) => takesFrom(spec, full(name)));

  expect([taken, reads]).toEqual([[true, true, false, true], 1]);
});
