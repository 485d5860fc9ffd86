// The schema options: what is checked before a broker is asked, and what a broker is told.
import { describe, expect, it } from 'vitest';
import { TOPIC, startClient } from '../../support/scripted-consumer.js';
import type { WireSchema } from '../../../src/wire.js';

const RECORD =
  '"schema.schema" must be an Avro record definition, { type: \'record\', name, fields } as an object or its JSON';

describe('a schema', () => {
  it.each([
    [{ type: 'avro' }, '"schema.type" must be one of bytes, string, json, got "avro"'],
    [{}, '"schema.type" is missing; it must be one of bytes, string, json'],
    [{ type: 'json' }, `${RECORD}, got undefined`],
    [{ type: 'json', schema: '{' }, `${RECORD}, got "{"`],
    [{ type: 'json', schema: { type: 'recor', name: 'A', fields: [] } }, `${RECORD}, got an object`],
    [{ type: 'json', schema: { type: 'record', fields: [] } }, `${RECORD}, got an object`],
    [{ type: 'json', schema: { type: 'record', name: 'A' } }, `${RECORD}, got an object`],
    [{ type: 'json', schema: '"record"' }, `${RECORD}, got ${JSON.stringify('"record"')}`],
    [{ type: 'string', schema: {} }, '"schema.schema" is for the type json only'],
    [{ type: 'string', shema: 1 }, 'unknown option "schema.shema", did you mean "schema"?'],
  ])('%j is refused by producers and consumers', async (given, problem) => {
    const { client } = await startClient();
    const schema = given as WireSchema;

    await expect(client.publisher(TOPIC, { schema })).rejects.toMatchObject({
      problems: [`publisher of "${TOPIC}": ${problem}`],
    });
    await expect(client.subscribe({ topics: [TOPIC], subscription: 's', schema })).rejects.toMatchObject({
      problems: [`subscribe: ${problem}`],
    });
  });

  it('is sent at each registration, as text or object alike, and bytes are none', async () => {
    const { client, server } = await startClient();
    const definition = { type: 'record', name: 'A', fields: [] };
    for (const schema of [definition, JSON.stringify(definition)]) {
      await client.publisher(TOPIC, { schema: { type: 'json', schema } });
    }
    await client.publisher(TOPIC, { schema: { type: 'bytes' } });
    await client.subscribe({ topics: [TOPIC], subscription: 's', schema: { type: 'string' } });

    const sent = server.received.flatMap((command) =>
      command.name === 'PRODUCER' || command.name === 'SUBSCRIBE' ? [command.body.schema] : [],
    );
    expect(sent.map((schema) => schema && [schema.type, Buffer.from(schema.schemaData).toString()])).toEqual([
      [2, JSON.stringify(definition)],
      [2, JSON.stringify(definition)],
      undefined,
      [1, ''],
    ]);
  });

  it('that a broker cannot tell now is asked for again', async () => {
    let asked = 0;
    const { client } = await startClient({
      GET_SCHEMA: ({ requestId }, peer) =>
        asked++ === 0
          ? peer.send('GET_SCHEMA_RESPONSE', { requestId, errorCode: 6, errorMessage: 'later' })
          : peer.send('GET_SCHEMA_RESPONSE', {
              requestId,
              schema: { name: 'x', type: 4, schemaData: Buffer.from('{}') },
              schemaVersion: Buffer.from([1]),
            }),
    });

    await expect(client.topicSchema('t')).resolves.toEqual({
      type: 'avro',
      definition: '{}',
      version: Uint8Array.from([1]),
    });
  });
});
