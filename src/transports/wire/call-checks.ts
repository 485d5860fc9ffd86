// What callers without a compiler get wrong when they settle and receive: told by name, before anything is done.
import { PulseworkError, describeValue } from '../../core/errors.js';
import type { MessageId } from '../../core/message-id.js';

/** @throws PulseworkError MESSAGE_ID_INVALID */
export function checkIsId(id: unknown): asserts id is MessageId {
  if (typeof id === 'object' && id !== null) return;
  throw new PulseworkError('MESSAGE_ID_INVALID', `a message id must be an object, got ${describeValue(id)}`);
}

/** @throws PulseworkError MESSAGE_ID_INVALID */
export function checkIsList(ids: unknown): asserts ids is readonly MessageId[] {
  if (Array.isArray(ids)) return;
  throw new PulseworkError('MESSAGE_ID_INVALID', `message ids must be a list of them, got ${describeValue(ids)}`);
}

/** What is wrong with the signal of a call that waits. Any that does what an AbortSignal does will do. */
export function signalProblem(signal: unknown): PulseworkError | undefined {
  if (typeof signal === 'object' && signal !== null && 'aborted' in signal) return undefined;
  return new PulseworkError('CONFIGURATION_INVALID', `receive needs an AbortSignal, got ${describeValue(signal)}`);
}
