// Handlers that take their topics by pattern: what is refused before anything is opened, and what is known of them then.
import { describe, expect, it } from 'vitest';
import { ConfigurationError, defineHandler, explain, success } from '../../../src/index.js';
import type { HandlerOptions } from '../../../src/index.js';

const handle = () => success();
const handler = (pattern: RegExp, options: HandlerOptions & { name?: string; subscription?: string } = {}) =>
  defineHandler({ name: 'h', subscription: 's', ...options, source: { pattern }, handle });

function problemsOf(...handlers: Parameters<typeof explain>[0] & readonly unknown[]): readonly string[] {
  try {
    explain(handlers as never);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

describe('a handler by pattern', () => {
  it('is known by its pattern, and its dead letters by the name of each topic', () => {
    const { handlers } = explain([handler(/orders-.+/)], { namespace: 'acme/prod' });
    expect(handlers.map(({ from, deadLetters }) => [from, deadLetters])).toEqual([
      [['/acme\\/prod\\/orders-.+/'], ['<topic>-s-DLQ']],
    ]);
  });

  it('keeps the namespace that its pattern names', () => {
    const { handlers } = explain([handler(/^persistent:\/\/acme\/dev\/orders-.+$/i)], { namespace: 'acme/prod' });
    expect(handlers[0]?.from).toEqual(['/persistent:\\/\\/acme\\/dev\\/orders-.+/i']);
  });

  it.each([
    [
      'its own dead letters (G-19: a dead letter topic that the subscription takes from is refused)',
      { deadLetterTopic: 'orders-dead' },
      'handler "h": "deadLetterTopic" orders-dead is one of the topics that its own pattern public/default/orders-.+ means',
    ],
    [
      'its own retry letters',
      { retryTopic: 'orders-again' },
      'handler "h": "retryTopic" orders-again is one of the topics that its own pattern public/default/orders-.+ means',
    ],
    [
      'a retry letter topic for each',
      { retryTopic: true },
      'handler "h": "retryTopic: true" makes a topic for each one that is named; beside a pattern, give it a name',
    ],
  ])('is refused with %s', (_, options, problem) => {
    expect(problemsOf(handler(/orders-.+/, options))).toEqual([problem]);
  });

  it('takes letter topics that it does not mean', () => {
    expect(problemsOf(handler(/orders-.+/, { deadLetterTopic: 'dead', retryTopic: 'again' }))).toEqual([]);
  });

  it('is refused with a pattern of an unknown form', () => {
    expect(problemsOf(handler(/a\/b/))).toEqual([
      'handler "h": its pattern must be like "orders-.*", "tenant/namespace/orders-.*" or "persistent://tenant/namespace/orders-.*", got "/a\\\\/b/"',
    ]);
  });

  it('does not share a subscription with another one on its topics', () => {
    const named = defineHandler({ name: 'other', source: 'orders-eu', subscription: 's', handle });
    const elsewhere = defineHandler({ name: 'elsewhere', source: 'orders-us', subscription: 'own', handle });
    expect(problemsOf(handler(/orders-.+/), named, elsewhere, handler(/orders-.+/, { name: 'again' }))).toEqual([
      'handlers "other" and "h" both use subscription "s" on persistent://public/default/orders-eu; give one of them another subscription name',
      'handlers "h" and "again" both use subscription "s" on pattern /public\\/default\\/orders-.+/; give one of them another subscription name',
      'handlers "other" and "again" both use subscription "s" on persistent://public/default/orders-eu; give one of them another subscription name',
    ]);
  });
});
