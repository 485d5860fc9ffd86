// The sequence id of a message that is published: the same rule for every publisher.
import { PulseworkError, describeValue } from './errors.js';

/** Undefined where nothing is wrong. One by one and without an object: it is asked of each message. */
export function sequenceIdProblem(sequenceId: unknown): string | undefined {
  if (Number.isSafeInteger(sequenceId) && (sequenceId as number) >= 0) return undefined;
  return `sequence id must be a whole number of 0 or more, got ${describeValue(sequenceId)}`;
}

/** @throws PulseworkError CONFIGURATION_INVALID */
export function checkSequenceId(sequenceId: unknown): void {
  const problem = sequenceIdProblem(sequenceId);
  if (problem !== undefined) throw new PulseworkError('CONFIGURATION_INVALID', problem);
}
