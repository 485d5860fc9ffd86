// What is wrong with a message that is to be published: all of it at once, before it is counted, copied or written. The
// compiler says the same; this is for callers without one, whose mistake must not stop the publishers of a whole client.
import { ConfigurationError, describeValue } from './errors.js';
import { areProperties, propertyProblems } from './properties.js';
import { sequenceIdProblem } from './sequence-id.js';

/**
 * What every publisher refuses; undefined when there is nothing wrong. Quick for the usual message: it is asked for each
 * one.
 */
export function publishProblem(message: unknown, sequenceId: unknown): ConfigurationError | undefined {
  const wrongId = sequenceIdProblem(sequenceId);
  if (wrongId === undefined && isMessage(message)) return undefined;
  const problems = problemsOf(message);
  if (wrongId !== undefined) problems.push(wrongId);
  return new ConfigurationError(problems);
}

/** The same of what has no sequence id, or is one of a batch. */
export function messageProblem(message: unknown): ConfigurationError | undefined {
  return isMessage(message) ? undefined : new ConfigurationError(problemsOf(message));
}

type Fields = Readonly<Record<string, unknown>>;

function isMessage(message: unknown): boolean {
  if (typeof message !== 'object' || message === null) return false;
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message as Fields;
  return (
    (payload === null || isBytes(payload)) &&
    isKey(key) &&
    (orderingKey === undefined || isBytes(orderingKey)) &&
    areProperties(properties) &&
    isTime(eventTimeMs) &&
    isTime(deliverAtMs)
  );
}

function problemsOf(message: unknown): string[] {
  if (typeof message === 'object' && message !== null) return fieldProblems(message);
  return [`a message must be an object with "payload" and "properties", got ${kindOf(message)}`];
}

function fieldProblems(message: object): string[] {
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message as Fields;
  const problems: string[] = [];
  if (payload !== null && !isBytes(payload)) {
    problems.push(`"payload" must be bytes (Uint8Array) or null, got ${kindOf(payload)}`);
  }
  if (!isKey(key)) problems.push(`"key" must be a text or bytes (Uint8Array), got ${describeValue(key)}`);
  if (orderingKey !== undefined && !isBytes(orderingKey)) {
    problems.push(`"orderingKey" must be bytes (Uint8Array), got ${kindOf(orderingKey)}`);
  }
  if (properties === undefined) problems.push('"properties" must be an object of texts, got undefined');
  problems.push(...propertyProblems(properties));
  for (const [name, value] of Object.entries({ eventTimeMs, deliverAtMs })) {
    if (!isTime(value)) problems.push(`"${name}" must be a number of milliseconds, got ${describeValue(value)}`);
  }
  return problems;
}

function isBytes(value: unknown): boolean {
  return value instanceof Uint8Array;
}

function isKey(key: unknown): boolean {
  return key === undefined || typeof key === 'string' || isBytes(key);
}

/** Any number: a time before 1970 is one, and brokers take what lies beyond all clocks. */
function isTime(time: unknown): boolean {
  return time === undefined || (typeof time === 'number' && !Number.isNaN(time));
}

/** Payloads do not belong into errors and logs. */
function kindOf(value: unknown): string {
  return typeof value === 'string' ? 'a text' : describeValue(value);
}
