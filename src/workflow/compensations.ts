// What would have to be undone, in the order in which it was done.
import type { StepContext } from './flow.js';
import type { Command, PlannedCompensation, StepWork } from './command.js';

export class Compensations {
  readonly #done: { readonly command: Command; readonly value: unknown }[] = [];

  add(command: Command, value: unknown): void {
    if (command.step?.compensate !== undefined) this.#done.push({ command, value });
  }

  /** The last result first. */
  reversed(): readonly { readonly command: Command; readonly undo: StepWork }[] {
    return this.#done.toReversed().flatMap(({ command, value }) => {
      const compensate = command.step?.compensate;
      return compensate === undefined ? [] : [{ command, undo: undoOf(compensate, value) }];
    });
  }
}

function undoOf(compensate: PlannedCompensation, value: unknown): StepWork {
  const { policy, timeoutMs } = compensate;
  const undo = { policy, timeoutMs, compensate: undefined };
  if ('remote' in compensate) return { ...undo, remote: compensate.remote(value as never) };
  return { ...undo, run: (context: StepContext) => compensate.run(value as never, context) };
}
