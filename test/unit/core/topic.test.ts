import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, jsonCodec, textCodec, topic } from '../../../src/index.js';

describe('topic()', () => {
  it('keeps name, schema and codec, JSON unless asked otherwise', () => {
    const schema = z.string();
    expect(topic('a', { payload: schema })).toMatchObject({ name: 'a', schema, codec: jsonCodec });
    expect(topic('b', { codec: textCodec }).codec).toBe(textCodec);
  });

  it.each([
    [{ schema: z.string() }, 'topic "a": unknown option "schema", known options are payload, codec'],
    [
      { payload: { id: 'string' } },
      'topic "a": "payload" must be a Standard Schema (zod, valibot, arktype, ...), got an object',
    ],
    [{ codec: 'json' }, 'topic "a": "codec" must have the methods encode, decode (e.g. jsonCodec), got "json"'],
    [5, 'topic "a": "options" must be an object such as { payload: schema }, got 5'],
    [z.string(), 'topic "a": a schema goes into the options: topic(name, { payload: schema })'],
  ])('refuses %o: a misspelt option would be a topic without a schema', (options, message) => {
    expect(() => topic('a', options as never)).toThrow(new ConfigurationError([message]));
  });

  it('refuses a name that is no text', () => {
    expect(() => topic(undefined as never)).toThrow('topic: its name must be a text, got undefined');
  });
});
