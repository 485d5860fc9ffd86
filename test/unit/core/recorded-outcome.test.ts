// Outcomes as a store keeps them: what comes back after JSON is what was recorded.
import { poison, skip, success } from 'pulsework';
import type { OutgoingMessage, RecordedOutcome } from 'pulsework';
import { describe, expect, it } from 'vitest';
import { causeChain } from '../../../src/core/failure-report.js';
import { isTopic } from '../../../src/core/topic.js';
import { outcomeProblem } from '../../../src/core/outcome.js';
import type { FinalOutcome } from '../../../src/core/recorded-outcome.js';
import { PreparedMessage, outcomeOf, recordedOutcome } from '../../../src/core/recorded-outcome.js';

function throughJson(outcome: FinalOutcome, messages: readonly PreparedMessage[] = []): FinalOutcome {
  return outcomeOf(JSON.parse(JSON.stringify(recordedOutcome(outcome, messages))) as RecordedOutcome);
}

function prepared(outcome: FinalOutcome): readonly PreparedMessage[] {
  const { messages } = outcome as { messages: readonly OutgoingMessage[] };
  return messages.map((each) => (each instanceof PreparedMessage ? each : expect.unreachable('not encoded')));
}

describe('a recorded outcome', () => {
  it('gives back each message as it was encoded, byte for byte', () => {
    const properties = Object.assign(Object.create(null) as Record<string, string>, { a: 'b' });
    Object.defineProperty(properties, '__proto__', { value: 'a property', enumerable: true });
    const message = {
      payload: new Uint8Array([0, 1, 254, 255]),
      key: new Uint8Array([255, 0]),
      orderingKey: new Uint8Array([7]),
      properties,
      eventTimeMs: 1_700_000_000_000,
      deliverAtMs: 1_800_000_000_000,
    };
    const restored = prepared(throughJson(success(), [new PreparedMessage('persistent://a/b/c', message)]));

    expect(restored.map((each) => each.message)).toEqual([message]);
    expect(Object.keys(restored[0]?.message.properties ?? {})).toEqual(['a', '__proto__']);
    expect(restored[0]?.topic.name).toBe('persistent://a/b/c');
  });

  it.each([
    ['no key', { payload: new Uint8Array(), properties: {} }],
    ['a text as key', { payload: new Uint8Array([1]), properties: {}, key: 'customer' }],
    ['no payload', { payload: null, properties: {} }],
  ])('gives back a message with %s', (_title, message) => {
    const [restored] = prepared(throughJson(success(), [new PreparedMessage('persistent://a/b/c', message)]));

    expect(restored?.message).toEqual({
      key: undefined,
      orderingKey: undefined,
      eventTimeMs: undefined,
      deliverAtMs: undefined,
      ...message,
    });
  });

  it('is an outcome that the runtime takes, its messages included', () => {
    const outcome = throughJson(success(), [
      new PreparedMessage('persistent://a/b/c', { payload: null, properties: {} }),
    ]);

    expect(outcomeProblem(outcome)).toBeUndefined();
    expect(prepared(outcome).every(({ topic }) => isTopic(topic))).toBe(true);
  });

  it('keeps the reason of a skip', () => {
    expect(throughJson(skip('not for us'))).toEqual(skip('not for us'));
  });

  it('keeps cause, reason and error of a poison, as a dead letter tells of them', () => {
    class CardDeclined extends Error {}
    const error = new CardDeclined('declined', { cause: new TypeError('no limit', { cause: 'a text' }) });
    const outcome = throughJson(poison(error));

    expect(outcome).toMatchObject({ kind: 'poison', cause: 'poison', failure: { reason: 'declined' } });
    const { failure } = outcome as { failure: { error: Error } };
    expect([failure.error.name, failure.error.message, failure.error.stack]).toEqual([
      'CardDeclined',
      'declined',
      error.stack,
    ]);
    expect(causeChain(failure.error)).toBe('TypeError: no limit <- Error: "a text"');
  });

  it('ends a chain of causes that refers to itself, and cuts an endless stack', () => {
    const error = new Error('round');
    error.cause = error;
    error.stack = 'x'.repeat(100_000);

    expect(JSON.stringify(recordedOutcome(poison(error), [])).length).toBeLessThan(10_000);
  });

  it('of a newer version is refused by its number', () => {
    expect(() => outcomeOf({ version: 2, kind: 'success', messages: [] } as never)).toThrow(
      expect.objectContaining({
        code: 'STORE_FORMAT_UNKNOWN',
        message: expect.stringContaining('version 2') as string,
      }) as Error,
    );
  });

  it('of an unknown kind is refused', () => {
    expect(() => outcomeOf({ version: 1, kind: 'retry' } as never)).toThrow(
      expect.objectContaining({ code: 'STORE_FORMAT_UNKNOWN' }) as Error,
    );
  });
});
