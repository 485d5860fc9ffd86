import { describe, expect, it } from 'vitest';
import type { DeadLetterFacts } from '../../../src/core/dead-letter.js';
import { DEAD_LETTER_VERSION, deadLetterMessage } from '../../../src/core/dead-letter.js';
import type { ReceivedMessage } from '../../../src/core/message.js';
import type { MessageProperties } from '../../../src/core/properties.js';
import { utf8Length } from '../../../src/core/text.js';
import { VERSION } from '../../../src/core/version.js';
import { cyclicError, errorWithFrames, hostileError } from './hostile-errors.js';

const MIB = 1024 * 1024;
const error = errorWithFrames('CardDeclined', 'card 4111 declined', 'Billing.charge (/srv/app/billing.ts:10:5)');
error.cause = new TypeError('gateway said no');

function received(more: Partial<ReceivedMessage> = {}): ReceivedMessage {
  return {
    id: {
      ledgerId: 7,
      entryId: 3,
      partition: 2,
      batchIndex: 1,
      batchSize: 4,
      topic: 'persistent://a/b/orders-partition-2',
    },
    payload: new TextEncoder().encode('{}'),
    key: 'customer-größe',
    orderingKey: Uint8Array.of(1, 2),
    eventTimeMs: 5,
    deliverAtMs: 99,
    publishTimeMs: 6,
    redeliveryCount: 3,
    properties: { tenant: 'acme' },
    connection: 1,
    ...more,
  };
}

function facts(more: Partial<DeadLetterFacts> = {}): DeadLetterFacts {
  return {
    originTopic: 'persistent://a/b/orders',
    originId: '7:3:2:1',
    cause: 'redeliveries-exhausted',
    failure: { reason: 'card 4111 declined', error },
    handler: 'Billing.charge',
    subscription: 'billing',
    attempt: 3,
    firstFailureMs: Date.UTC(2026, 0, 1, 10),
    lastFailureMs: Date.UTC(2026, 0, 1, 11),
    host: 'host-1',
    processId: 42,
    redact: undefined,
    maxMessageBytes: 5 * MIB,
    ...more,
  };
}

function propertiesOf(message: Partial<ReceivedMessage> = {}, more: Partial<DeadLetterFacts> = {}): MessageProperties {
  return deadLetterMessage(received(message), facts(more)).properties;
}

describe('the message', () => {
  it('keeps payload, key, ordering key and event time', () => {
    const original = received();
    const { payload, key, orderingKey, eventTimeMs } = original;
    expect(deadLetterMessage(original, facts())).toMatchObject({ payload, key, orderingKey, eventTimeMs });
  });

  it('is not delayed as the original was', () => {
    expect(deadLetterMessage(received(), facts()).deliverAtMs).toBeUndefined();
  });

  it.each([null, new Uint8Array()])('keeps the payload %j as it is', (payload) => {
    expect(deadLetterMessage(received({ payload }), facts()).payload).toBe(payload);
  });
});

describe('the properties', () => {
  it('are complete', () => {
    expect({ ...propertiesOf() }).toEqual({
      tenant: 'acme',
      REAL_TOPIC: 'persistent://a/b/orders',
      ORIGIN_MESSAGE_ID: '7:3:2:1',
      'pulsework-dead-letter-version': DEAD_LETTER_VERSION,
      'pulsework-cause': 'redeliveries-exhausted',
      'pulsework-reason': 'card 4111 declined',
      'pulsework-error-name': 'CardDeclined',
      'pulsework-error-message': 'card 4111 declined',
      'pulsework-stack': error.stack,
      'pulsework-cause-chain': 'TypeError: gateway said no',
      'pulsework-fingerprint': 'CardDeclined at Billing.charge (billing.ts)',
      'pulsework-handler': 'Billing.charge',
      'pulsework-subscription': 'billing',
      'pulsework-attempt': '3',
      'pulsework-first-failure-time': '2026-01-01T10:00:00.000Z',
      'pulsework-last-failure-time': '2026-01-01T11:00:00.000Z',
      'pulsework-host': 'host-1',
      'pulsework-process-id': '42',
      'pulsework-version': VERSION,
    });
  });

  it('have no error where there was none', () => {
    const names = Object.keys(propertiesOf({}, { cause: 'poison', failure: { reason: 'no stock' } }));
    expect(names.filter((name) => /error|stack|chain/.test(name))).toEqual([]);
  });

  it('have no chain of causes where there is none', () => {
    const properties = propertiesOf({}, { failure: { reason: 'x', error: new Error('x') } });
    expect('pulsework-cause-chain' in properties).toBe(false);
  });

  it('keep the first topic and id of a message that was a dead letter or retry letter before (D-11)', () => {
    const earlier = { REAL_TOPIC: 'persistent://a/b/first', ORIGIN_MESSAGE_ID: '1:1:-1' };
    expect(propertiesOf({ properties: earlier })).toMatchObject(earlier);
  });

  it('do not mix the reasons of an earlier dead letter with the new ones', () => {
    const properties = propertiesOf({ properties: propertiesOf() }, { cause: 'poison', failure: { reason: 'again' } });
    expect(properties['pulsework-reason']).toBe('again');
    expect(Object.keys(properties).filter((name) => /error|stack|chain/.test(name))).toEqual([]);
  });

  it.each(['__proto__', 'constructor', 'length'])('keep an original one named %s', (name) => {
    const properties = propertiesOf({ properties: JSON.parse(`{"${name}":"kept"}`) as MessageProperties });
    expect(Object.entries(properties)).toContainEqual([name, 'kept']);
  });

  it('leave the original message as it was', () => {
    const original = received();
    deadLetterMessage(original, facts());
    expect(original.properties).toEqual({ tenant: 'acme' });
  });
});

describe('errors that misbehave', () => {
  it('make a dead letter even when every property of the error throws', () => {
    const properties = propertiesOf({}, { failure: { reason: 'x', error: hostileError() } });
    expect(properties).toMatchObject({ 'pulsework-error-name': 'Error', 'pulsework-error-message': '' });
  });

  it('make a dead letter even when the chain of causes is a circle', () => {
    const chain = propertiesOf({}, { failure: { reason: 'x', error: cyclicError() } })['pulsework-cause-chain'];
    expect(chain?.startsWith('TypeError: inner <- Error: outer <- TypeError: inner')).toBe(true);
  });
});

describe('limits', () => {
  const long = errorWithFrames('Long'.repeat(2_000), '€'.repeat(9_000), 'f (/a.ts:1:1)');
  long.cause = new Error('c'.repeat(9_000));
  const properties = propertiesOf({}, { failure: { reason: 'r'.repeat(9_000), error: long } });

  it.each([
    ['pulsework-stack', 8 * 1024],
    ['pulsework-cause-chain', 4 * 1024],
    ['pulsework-reason', 2 * 1024],
    ['pulsework-error-name', 2 * 1024],
    ['pulsework-error-message', 2 * 1024],
    ['pulsework-fingerprint', 2 * 1024],
  ])('%s takes at most %i bytes and shows that it was cut', (name, maxBytes) => {
    const value = properties[name] ?? '';
    expect(utf8Length(value)).toBeLessThanOrEqual(maxBytes);
    expect(value.endsWith(' [cut]')).toBe(true);
  });

  /** Names left when the broker takes no more than `spare` bytes of properties. */
  function namesWithin(spare: number, message: Partial<ReceivedMessage> = {}): string[] {
    const { payload, key = '', orderingKey } = received(message);
    const envelope = 512 + (payload?.length ?? 0) + utf8Length(String(key)) + (orderingKey?.length ?? 0);
    return Object.keys(propertiesOf(message, { maxMessageBytes: spare + envelope }));
  }

  function sizeOf(set: MessageProperties): number {
    return Object.entries(set).reduce((sum, [name, value]) => sum + utf8Length(name) + utf8Length(value) + 8, 0);
  }

  it('cuts nothing that fits exactly', () => {
    expect(namesWithin(sizeOf(propertiesOf()))).toEqual(Object.keys(propertiesOf()));
  });

  it('cuts the stack first', () => {
    const all = propertiesOf();
    const left = namesWithin(sizeOf(all) - 1);
    expect(left).toEqual(Object.keys(all).filter((name) => name !== 'pulsework-stack'));
  });

  it('cuts from the least to the most important, then the original properties from the last one', () => {
    const message = { properties: { first: '1', second: '2' } };
    const all = propertiesOf(message);
    const order: string[] = [];
    for (let spare = sizeOf(all); spare >= 0; spare--) {
      const left = namesWithin(spare, message);
      order.push(...Object.keys(all).filter((name) => !left.includes(name) && !order.includes(name)));
    }
    expect(order).toEqual([
      'pulsework-stack',
      'pulsework-cause-chain',
      'pulsework-version',
      'pulsework-process-id',
      'pulsework-host',
      'pulsework-fingerprint',
      'pulsework-first-failure-time',
      'pulsework-last-failure-time',
      'pulsework-error-message',
      'pulsework-error-name',
      'pulsework-subscription',
      'pulsework-handler',
      'pulsework-reason',
      'pulsework-attempt',
      'second',
      'first',
      'pulsework-dead-letter-version',
      'ORIGIN_MESSAGE_ID',
      'REAL_TOPIC',
      'pulsework-cause',
    ]);
  });

  it('cuts where the message came from and why it failed only after everything else, also of a dead letter of a dead letter', () => {
    const message = { properties: propertiesOf() };
    const essential = ['ORIGIN_MESSAGE_ID', 'REAL_TOPIC', 'pulsework-cause', 'pulsework-dead-letter-version'];
    const room = essential.reduce(
      (sum, name) => sum + utf8Length(name) + utf8Length(propertiesOf()[name] ?? '') + 8,
      0,
    );
    expect(namesWithin(room, message).sort()).toEqual(essential);
    expect(namesWithin(-1_000, message)).toEqual([]);
  });

  it('takes a payload as large as the broker takes', () => {
    const payload = new Uint8Array(5 * MIB);
    expect(deadLetterMessage(received({ payload }), facts()).payload).toBe(payload);
  });
});

describe('redaction', () => {
  const textNames = ['reason', 'error-message', 'stack'].map((name) => `pulsework-${name}`);

  it.each([
    ['a pattern', [/4111/]],
    ['a function', (text: string) => text.replaceAll('4111', '[redacted]')],
  ])('by %s applies to reason, message and stack', (_, redact) => {
    const properties = propertiesOf({}, { redact });
    for (const name of textNames) expect(properties[name]).toContain('card [redacted] declined');
  });

  it('leaves no trace of a secret in any of our properties', () => {
    const secret = errorWithFrames('E', 'token s3cr3t', 'f (/a.ts:1:1)');
    secret.cause = new Error('also s3cr3t');
    const failure = { reason: 'because s3cr3t', error: secret };
    const properties = propertiesOf({}, { failure, redact: [/s3cr3t/] });
    expect(JSON.stringify(properties)).not.toContain('s3cr3t');
  });

  it('comes before the cut: no half of a secret is left at the end', () => {
    const reason = `${'x'.repeat(2 * 1024 - 10)}4111111111111111`;
    const shown = propertiesOf({}, { failure: { reason }, redact: [/\d{16}/] })['pulsework-reason'];
    expect(shown).not.toContain('4');
  });

  it('that throws lets nothing out and loses no dead letter', () => {
    const redact = (): string => {
      throw new Error('bug');
    };
    const properties = propertiesOf({}, { redact });
    for (const name of textNames) expect(properties[name]).toBe('[redaction failed]');
  });

  it('leaves the original properties alone', () => {
    expect(propertiesOf({ properties: { card: '4111' } }, { redact: [/4111/] })['card']).toBe('4111');
  });
});
