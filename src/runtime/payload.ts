// From bytes to a checked payload and back: codec first, then the Standard Schema. A payload that does not pass is
// a fact about the message (Undecodable); a schema that throws is a fault of the program and thrown on.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { PulseworkError, containRejection, toError } from '../core/errors.js';
import type { PayloadReader } from './handler-plan.js';

/** Enough to see what is wrong; a list of ten thousand bad items must not become the dead letter. */
const MAX_ISSUES_SHOWN = 20;

/** Why a payload cannot be given to a handler. */
export class Undecodable {
  readonly error: PulseworkError;

  constructor(reason: string, cause?: unknown) {
    this.error = new PulseworkError('PAYLOAD_UNDECODABLE', reason, { cause });
  }
}

/** The payload as the schema gives it, or why there is none. A promise only where the schema is asynchronous. */
export function readPayload(bytes: Uint8Array | null, reader: PayloadReader): unknown {
  let value: unknown = null;
  if (bytes !== null) {
    try {
      value = reader.codec.decode(bytes);
      containRejection(value);
      if (isPromiseLike(value)) throw new TypeError('a codec must decode at once, it gave a promise');
    } catch (error) {
      return new Undecodable(`payload is not valid ${reader.codec.name}: ${toError(error).message}`, error);
    }
  }
  if (reader.schema === undefined) return value;
  const result = reader.schema['~standard'].validate(value);
  return isPromiseLike(result) ? Promise.resolve(result).then(checked) : checked(result);
}

/** Also of other libraries: a schema may give any thenable. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

function checked(result: StandardSchemaV1.Result<unknown>): unknown {
  return result.issues === undefined
    ? result.value
    : new Undecodable(`payload does not match its schema: ${issuesText(result.issues)}`);
}

/** `customer.email: Invalid email; items.0.quantity: Too small`. */
export function issuesText(issues: readonly StandardSchemaV1.Issue[]): string {
  const shown = issues.slice(0, MAX_ISSUES_SHOWN).map((issue) => {
    const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
  const more = issues.length - shown.length;
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ');
}
