// Schemas that brokers keep for topics: what a producer or a consumer registers, and what a topic has. Payloads are not
// touched: who publishes encodes them, and who receives decodes them.
import { describeValue } from '../../core/errors.js';
import type { OptionChecker } from '../../core/options.js';
import type { ConnectionPool } from './connection-pool.js';
import type { SchemaData } from './protocol/schema-commands.js';
import { SERVER_ERROR, connectionLost, serverError } from './server-errors.js';

/** By the numbers of the protocol. */
const TYPES = [
  ...['bytes', 'string', 'json', 'protobuf', 'avro', 'boolean', 'int8', 'int16', 'int32', 'int64', 'float', 'double'],
  ...['date', 'time', 'timestamp', 'key-value', 'instant', 'local-date', 'local-time', 'local-date-time'],
  ...['protobuf-native', 'auto-consume', 'external'],
];
const NUMBERS = { string: 1, json: 2 } as const;

/** What payloads on a topic are, as the broker is told. */
export type WireSchema =
  /** Nothing is registered; brokers take it on a topic that has a schema unless its namespace forbids it. */
  | { readonly type: 'bytes' }
  /** UTF-8 text. */
  | { readonly type: 'string' }
  /** JSON; `schema` is an Avro record definition, as text or as an object, by which brokers decide what is compatible. */
  | { readonly type: 'json'; readonly schema: string | Readonly<Record<string, unknown>> };

/** What a topic has. */
export interface TopicSchema {
  /** `json`, `string`, `avro`, ... */
  readonly type: string;
  /** Of `json` and `avro` a record definition in JSON; empty for `string` and the like. */
  readonly definition: string;
  /** The broker's number of it, as it stands in messages; the first one is eight zero bytes. */
  readonly version: Uint8Array;
}

export function checkSchema(value: unknown, check: OptionChecker): void {
  if (value === undefined || !check.object('schema', value, "{ type: 'json', schema }")) return;
  const { type, schema } = value;
  check.unknownOptions(value, ['type', 'schema'], 'schema.');
  check.required(value, { type: 'one of bytes, string, json' }, 'schema.');
  check.oneOf('schema.type', type, ['bytes', 'string', 'json']);
  if (type === 'json' && definitionOf(schema) === undefined) {
    const rule =
      '"schema.schema" must be an Avro record definition, { type: \'record\', name, fields } as an object or its JSON';
    check.problem(`${rule}, got ${describeValue(schema)}`);
  }
  if (type !== 'json' && schema !== undefined) check.problem('"schema.schema" is for the type json only');
}

/** As PRODUCER and SUBSCRIBE carry it; checked before. */
export function schemaData(schema: WireSchema | undefined): SchemaData | undefined {
  if (schema === undefined || schema.type === 'bytes') return undefined;
  if (schema.type === 'string') return { name: 'String', schemaData: Buffer.alloc(0), type: NUMBERS.string };
  return { name: 'JSON', schemaData: Buffer.from(definitionOf(schema.schema) ?? ''), type: NUMBERS.json };
}

/** The newest schema of a topic; undefined when it has none. @param topic full name. @throws TransportError */
export async function askSchema(pool: ConnectionPool, topic: string): Promise<TopicSchema | undefined> {
  const connection = await pool.toService();
  const answer = await connection.request('GET_SCHEMA', { topic }, topic);
  if (answer.name !== 'GET_SCHEMA_RESPONSE') throw connectionLost(`GET_SCHEMA of ${topic}: answered ${answer.name}`);
  const { errorCode, errorMessage, schema, schemaVersion } = answer.body;
  if (errorCode === SERVER_ERROR.topicNotFound) return undefined;
  if (errorCode !== undefined) throw serverError(`GET_SCHEMA of ${topic}`, errorCode, errorMessage);
  if (schema === undefined) return undefined;
  return {
    type: TYPES[schema.type] ?? `type ${schema.type}`,
    definition: Buffer.from(schema.schemaData).toString('utf8'),
    version: Uint8Array.from(schemaVersion ?? []),
  };
}

/** The JSON text of a record, or a text that is the JSON of one. To a definition that is none brokers give no answer. */
function definitionOf(schema: unknown): string | undefined {
  try {
    const text = typeof schema === 'string' ? schema : JSON.stringify(schema);
    const parsed: unknown = JSON.parse(text);
    return isRecord(parsed) ? text : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { type, name, fields } = value as Readonly<Record<string, unknown>>;
  return type === 'record' && typeof name === 'string' && Array.isArray(fields);
}
