import { describe, expect, it } from 'vitest';
import type { ReceivedMessage } from '../../../src/core/message.js';
import { readRetryLetter, retryLetterMessage } from '../../../src/core/retry-letter.js';

const FIRST = Date.UTC(2026, 0, 1);

function received(properties: Record<string, string>, more: Partial<ReceivedMessage> = {}): ReceivedMessage {
  const id = {
    ledgerId: 7,
    entryId: 3,
    partition: 2,
    batchIndex: -1,
    batchSize: 0,
    topic: 'persistent://a/b/orders-partition-2',
  };
  const rest = { publishTimeMs: 6, redeliveryCount: 0, connection: 1 };
  return {
    id,
    payload: Uint8Array.of(1, 2),
    key: 'k',
    orderingKey: Uint8Array.of(9),
    eventTimeMs: 5,
    ...rest,
    properties,
    ...more,
  };
}

const facts = { attempts: 2, delayMs: 900_000, now: FIRST + 1_000, firstFailureMs: FIRST };

/** The letter as it comes back from the retry letter topic. */
function comesBack(sent: ReturnType<typeof retryLetterMessage>): ReceivedMessage {
  const id = {
    ledgerId: 8,
    entryId: 0,
    partition: -1,
    batchIndex: -1,
    batchSize: 0,
    topic: 'persistent://a/b/orders-s-RETRY',
  };
  return received({ ...sent.properties }, { ...sent, id, properties: sent.properties });
}

describe('a retry letter', () => {
  it('carries payload, key, ordering key and event time of the original, and is due when it says', () => {
    expect(retryLetterMessage(received({}), undefined, facts)).toMatchObject({
      payload: Uint8Array.of(1, 2),
      key: 'k',
      orderingKey: Uint8Array.of(9),
      eventTimeMs: 5,
      deliverAtMs: FIRST + 901_000,
    });
  });

  // D-21: RECONSUMETIMES counts the letters, DELAY_TIME is in milliseconds; D-13: REAL_TOPIC has no partition.
  it('D-21: has the properties that Java writes, and our own', () => {
    expect({ ...retryLetterMessage(received({ tenant: 'acme' }), undefined, facts).properties }).toEqual({
      tenant: 'acme',
      REAL_TOPIC: 'persistent://a/b/orders',
      ORIGIN_MESSAGE_ID: '7:3:2',
      RECONSUMETIMES: '1',
      DELAY_TIME: '900000',
      'pulsework-attempt': '2',
      'pulsework-republished': '1',
      'pulsework-not-before': String(FIRST + 901_000),
      'pulsework-first-failure-time': '2026-01-01T00:00:00.000Z',
    });
  });

  it('read again gives the original properties and what it carried', () => {
    const original = { tenant: 'acme', length: '3', REAL_TOPIC: 'persistent://x/y/z', RECONSUMETIMES: 'mine' };
    const back = comesBack(retryLetterMessage(received(original), undefined, facts));

    const { letter, properties } = readRetryLetter(back);

    expect({ ...properties }).toEqual(original);
    expect(letter).toEqual({
      originId: '7:3:2',
      originTopic: 'persistent://a/b/orders',
      attempts: 2,
      republished: 1,
      dueMs: FIRST + 901_000,
      firstFailureMs: FIRST,
    });
  });

  it('of a letter keeps the origin and counts one more', () => {
    const first = readRetryLetter(comesBack(retryLetterMessage(received({ a: 'b' }), undefined, facts)));
    const copy = received({ ...first.properties }, { properties: first.properties });
    const second = retryLetterMessage(copy, first.letter, { ...facts, attempts: 3 });

    expect(second.properties).toMatchObject({
      ORIGIN_MESSAGE_ID: '7:3:2',
      RECONSUMETIMES: '2',
      'pulsework-attempt': '3',
      a: 'b',
    });
    expect({ ...readRetryLetter(comesBack(second)).properties }).toEqual({ a: 'b' });
  });

  it('that Java wrote is read, the attempts from its own count', () => {
    const javas = {
      REAL_TOPIC: 'persistent://a/b/orders-partition-1',
      ORIGIN_MESSAGE_ID: '4:5:1',
      ORIGIN_MESSAGE_IDY_TIME: '4:5:1',
      REAL_SUBSCRIPTION: 's',
      RECONSUMETIMES: '3',
      DELAY_TIME: '10',
      mine: 'yes',
    };

    const { letter, properties } = readRetryLetter(received(javas));

    expect(letter).toMatchObject({ originId: '4:5:1', originTopic: 'persistent://a/b/orders', attempts: 3, dueMs: 0 });
    expect({ ...properties }).toEqual({ mine: 'yes' });
  });

  it('that Java published again counts what Java added', () => {
    const both = { RECONSUMETIMES: '5', 'pulsework-attempt': '2', 'pulsework-republished': '4' };
    expect(readRetryLetter(received(both)).letter.attempts).toBe(3);
  });

  it('that was only put off counts nothing', () => {
    const once = readRetryLetter(comesBack(retryLetterMessage(received({}), undefined, facts))).letter;
    const twice = readRetryLetter(comesBack(retryLetterMessage(received({}), once, facts))).letter;

    expect([once.attempts, twice.attempts, twice.republished]).toEqual([2, 2, 2]);
  });

  it.each(['-1', '1e9', 'many', '', '9'.repeat(40), '1.5'])('with the count %j is read as one without', (text) => {
    const odd = { RECONSUMETIMES: text, 'pulsework-attempt': text, 'pulsework-not-before': text };
    expect(readRetryLetter(received(odd)).letter).toMatchObject({ attempts: 0, dueMs: 0 });
  });
});
