// From what a user wants published to a message for a broker: schema, codec, options, and the properties that tie it
// to what it follows from. What cannot ever be published is refused here, before anything is sent.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import type { EncodedMessage, MessageOptions, OutgoingMessage } from '../core/message.js';
import { OptionChecker } from '../core/options.js';
import { copyProperties, propertyProblems } from '../core/properties.js';
import type { Clock } from '../ports/clock.js';
import { isPromiseLike, issuesText } from './payload.js';

const OPTION_NAMES = [
  'key',
  'orderingKey',
  'properties',
  'eventTime',
  'deliverAt',
  'deliverAfterMs',
  'correlationId',
] as const satisfies readonly (keyof MessageOptions)[];

/** Properties that tie a message to the delivery it follows from. */
export interface Provenance {
  /** Of the message itself: the same on every repeat, so that receivers can recognise it. */
  readonly messageId?: string | undefined;
  readonly correlationId?: string | undefined;
  /** The id of the message it follows from. */
  readonly causationId?: string | undefined;
}

/** @throws PulseworkError PUBLISH_REFUSED when the payload or an option is wrong. */
export async function encodeMessage(
  outgoing: OutgoingMessage,
  clock: Clock,
  provenance: Provenance = {},
): Promise<EncodedMessage> {
  return encodeMessageNow(outgoing, clock, provenance);
}

/** The same; a promise only where the schema gives one. Throws at once what is wrong at once. */
export function encodeMessageNow(
  outgoing: OutgoingMessage,
  clock: Clock,
  provenance: Provenance = {},
): EncodedMessage | Promise<EncodedMessage> {
  const { topic, options } = outgoing;
  const problems = optionProblems(options);
  if (problems.length > 0) throw refused(topic.name, problems.join('; '));
  const payload = encodePayload(outgoing);
  if (payload instanceof Promise) return payload.then((bytes) => encoded(bytes, outgoing, clock, provenance));
  return encoded(payload, outgoing, clock, provenance);
}

function encoded(
  payload: Uint8Array,
  { options }: OutgoingMessage,
  clock: Clock,
  provenance: Provenance,
): EncodedMessage {
  const properties = copyProperties(options.properties);
  const correlationId = options.correlationId ?? provenance.correlationId;
  if (provenance.messageId !== undefined) properties['pulsework-message-id'] = provenance.messageId;
  if (correlationId !== undefined) properties['pulsework-correlation-id'] = correlationId;
  if (provenance.causationId !== undefined) properties['pulsework-causation-id'] = provenance.causationId;
  return {
    payload,
    key: options.key,
    orderingKey: options.orderingKey,
    properties,
    eventTimeMs: options.eventTime?.getTime(),
    deliverAtMs:
      options.deliverAfterMs === undefined ? options.deliverAt?.getTime() : clock.now() + options.deliverAfterMs,
  };
}

function encodePayload(outgoing: OutgoingMessage): Uint8Array | Promise<Uint8Array> {
  const { topic, payload } = outgoing;
  const result = topic.schema?.['~standard'].validate(payload);
  if (isPromiseLike(result)) return Promise.resolve(result).then((checked) => bytesOf(outgoing, checked));
  return bytesOf(outgoing, result);
}

function bytesOf(
  { topic, payload }: OutgoingMessage,
  result: StandardSchemaV1.Result<unknown> | undefined,
): Uint8Array {
  if (result?.issues !== undefined)
    throw refused(topic.name, `payload does not match its schema: ${issuesText(result.issues)}`);
  try {
    return topic.codec.encode(payload);
  } catch (error) {
    throw refused(topic.name, `payload cannot be written as ${topic.codec.name}: ${toError(error).message}`, error);
  }
}

function optionProblems(options: MessageOptions): readonly string[] {
  const check = new OptionChecker();
  const given: unknown = options;
  if (!check.object('options', given)) return check.problems;
  check.unknownOptions(options, OPTION_NAMES);
  if (
    options.key !== undefined &&
    typeof options.key !== 'string' &&
    !((options.key as unknown) instanceof Uint8Array)
  ) {
    check.problem(`"key" must be a text or bytes, got ${describeValue(options.key)}`);
  }
  if (options.orderingKey !== undefined && !((options.orderingKey as unknown) instanceof Uint8Array)) {
    check.problem(`"orderingKey" must be bytes, got ${describeValue(options.orderingKey)}`);
  }
  for (const name of ['eventTime', 'deliverAt'] as const) {
    const date: unknown = options[name];
    if (date !== undefined && !(date instanceof Date && !Number.isNaN(date.getTime()))) {
      check.problem(`"${name}" must be a valid Date, got ${describeValue(date)}`);
    }
  }
  check.durationMs('deliverAfterMs', options.deliverAfterMs);
  if (options.deliverAt !== undefined && options.deliverAfterMs !== undefined)
    check.problem('give "deliverAt" or "deliverAfterMs", not both');
  check.nonEmptyString('correlationId', options.correlationId);
  return [...check.problems, ...propertyProblems(options.properties)];
}

function refused(topic: string, rule: string, cause?: unknown): PulseworkError {
  return new PulseworkError('PUBLISH_REFUSED', `message for topic ${JSON.stringify(topic)}: ${rule}`, { cause });
}
