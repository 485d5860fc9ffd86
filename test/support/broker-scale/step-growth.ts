// Whether the steps of an operation grow at most with the logarithm of the number of messages.

export interface OperationSteps {
  readonly name: string;
  readonly per: 'message' | 'call';
  /** Numbers of messages, ascending. */
  readonly sizes: readonly number[];
  /** At each of them. */
  readonly steps: readonly number[];
}

/** Where a loop happens to end, e.g. at the border of a word of 32 positions. */
const TOLERANCE = 1.1;

/** What grew faster, a sentence each. */
export function fasterThanLog({ name, per, sizes, steps }: OperationSteps): string[] {
  const [least = 0] = steps;
  const [smallest = 0] = sizes;
  if (!(least > 0)) return [`${name}: no steps were counted at ${smallest} messages`];
  return sizes.flatMap((size, i) => {
    const taken = steps[i] ?? NaN;
    const limit = least * (Math.log(size) / Math.log(smallest)) * TOLERANCE;
    if (taken <= limit) return [];
    return [`${name}: ${taken.toFixed(1)} steps per ${per} at ${size} messages, ${least.toFixed(1)} at ${smallest}`];
  });
}
