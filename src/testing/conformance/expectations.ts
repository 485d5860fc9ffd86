// The assertions of the conformance suite: few, without a test runner, with messages that show both sides.
import { PulseworkError, describeValue } from '../../core/errors.js';
import type { ErrorCode } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';

/** A transport did not do what a case asks. */
export class ConformanceFailure extends Error {
  override readonly name = 'ConformanceFailure';
}

/** @throws ConformanceFailure with `message` unless `condition` holds. */
export function expectTrue(condition: boolean, message: string): asserts condition {
  if (!condition) throw new ConformanceFailure(message);
}

/** Equal in value: numbers, texts, bytes, lists, records. @param what names what was looked at. */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const [shown, wanted] = [shownValue(actual), shownValue(expected)];
  if (shown !== wanted) throw new ConformanceFailure(`${what}: expected ${wanted}, got ${shown}`);
}

/** The error, which must be one of Pulsework's with this code. */
export async function expectRefused(call: Promise<unknown>, code: ErrorCode, what: string): Promise<PulseworkError> {
  const result = await call.then(
    (value: unknown) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ('value' in result) throw new ConformanceFailure(`${what}: expected ${code}, but it succeeded`);
  const { error } = result;
  if (error instanceof PulseworkError && error.code === code) return error;
  const got = error instanceof PulseworkError ? `${error.code} (${error.message})` : describeValue(error);
  throw new ConformanceFailure(`${what}: expected ${code}, got ${got}`);
}

const decoder = new TextDecoder();

export function textOf(message: ReceivedMessage): string {
  return message.payload === null ? 'null value' : decoder.decode(message.payload);
}

export function textsOf(messages: readonly ReceivedMessage[]): string[] {
  return messages.map(textOf);
}

export function countsOf(messages: readonly ReceivedMessage[]): number[] {
  return messages.map(({ redeliveryCount }) => redeliveryCount);
}

/** One text per value: fields in the order of their names, so that equal values have equal texts. */
function shownValue(value: unknown): string {
  if (value instanceof Uint8Array) return `bytes [${[...value].join(' ')}]`;
  if (Array.isArray(value)) return `[${value.map(shownValue).join(', ')}]`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}: ${shownValue(field)}`).join(', ')}}`;
}
