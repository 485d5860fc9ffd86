// What would have to be undone, in the order in which it was done.
import type { StepContext } from './flow.js';
import type { Command, StepWork } from './command.js';

export class Compensations {
  readonly #done: { readonly command: Command; readonly value: unknown }[] = [];

  add(command: Command, value: unknown): void {
    if (command.step?.compensate !== undefined) this.#done.push({ command, value });
  }

  /** The last result first. */
  reversed(): readonly { readonly command: Command; readonly undo: StepWork }[] {
    return this.#done.toReversed().flatMap(({ command, value }) => {
      const compensate = command.step?.compensate;
      if (compensate === undefined) return [];
      const run = (context: StepContext): unknown => compensate.run(value as never, context);
      const { policy, timeoutMs } = compensate;
      return [{ command, undo: { run, policy, timeoutMs, compensate: undefined } }];
    });
  }
}
