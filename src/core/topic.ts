// `topic()`: a name, the shape of its payloads and how they are written. Shared by publishers and handlers.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Codec } from './codec.js';
import { jsonCodec } from './codec.js';
import { describeValue } from './errors.js';
import type { MessageOptions, OutgoingMessage } from './message.js';
import { OptionChecker } from './options.js';

export interface TopicOptions<S extends StandardSchemaV1 = StandardSchemaV1> {
  /** Any Standard Schema (zod, valibot, arktype, ...). Checked when a message is published and when it arrives. @default unchecked */
  readonly payload?: S | undefined;
  /** @default jsonCodec */
  readonly codec?: Codec | undefined;
}

/** `In` is what publishers give; `Out` is what handlers get (they differ where the schema transforms). */
export interface Topic<In, Out = unknown> {
  readonly kind: 'topic';
  /** Short or full; a short one belongs to the runtime's namespace. */
  readonly name: string;
  readonly schema: StandardSchemaV1<unknown, Out> | undefined;
  readonly codec: Codec;
  /** A message for this topic; nothing is sent until an outcome or a publisher carries it. */
  message(payload: In, options?: MessageOptions): OutgoingMessage;
}

/**
 * Declares a topic. The payload's type follows from the schema, or without one from the codec: `Uint8Array` with
 * `bytesCodec`, `string` with `textCodec`, else `unknown`.
 * @param name `orders`, `tenant/namespace/orders` or `persistent://tenant/namespace/orders`. Checked when the runtime starts.
 * @throws ConfigurationError on an unknown option or a payload that is no Standard Schema.
 */
export function topic<T = unknown>(
  name: string,
  options?: { readonly payload?: undefined; readonly codec?: Codec<T> | undefined },
): Topic<T, T>;
export function topic<S extends StandardSchemaV1>(
  name: string,
  options: TopicOptions<S>,
): Topic<StandardSchemaV1.InferInput<S>, StandardSchemaV1.InferOutput<S>>;
export function topic(name: string, options: TopicOptions = {}): Topic<unknown> {
  checkTopicOptions(name, options);
  const made: Topic<unknown> = {
    kind: 'topic',
    name,
    schema: options.payload,
    codec: options.codec ?? jsonCodec,
    message: (payload, messageOptions = {}) => ({ topic: made, payload, options: messageOptions }),
  };
  return made;
}

/** A misspelt option would be a topic without a schema. The name itself is checked at start, where its namespace is known. */
function checkTopicOptions(name: string, options: TopicOptions): void {
  const check = new OptionChecker(typeof (name as unknown) === 'string' ? `topic ${JSON.stringify(name)}` : 'topic');
  if (typeof (name as unknown) !== 'string') check.problem(`its name must be a text, got ${describeValue(name)}`);
  if (isSchema(options)) check.problem('a schema goes into the options: topic(name, { payload: schema })');
  else if (check.object('options', options, '{ payload: schema }')) {
    const { payload: schema, codec } = options as { payload?: unknown; codec?: unknown };
    check.unknownOptions(options, ['payload', 'codec']);
    check.methods('codec', codec, ['encode', 'decode'], 'e.g. jsonCodec');
    if (schema !== undefined && !isSchema(schema)) {
      check.problem(`"payload" must be a Standard Schema (zod, valibot, arktype, ...), got ${describeValue(schema)}`);
    }
  }
  check.throwIfAny();
}

function isSchema(value: unknown): boolean {
  return (typeof value === 'function' || typeof value === 'object') && value !== null && '~standard' in value;
}

/** Whether a value is what `topic()` returns. */
export function isTopic(value: unknown): value is Topic<never> {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'topic';
}
