// One attempt of a step that runs: its signal, its time limit, and its end, told once.
import { durationText } from '../core/duration-text.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Command } from './command.js';
import { commandText } from './command.js';
import type { StepContext } from './flow.js';
import type { AttemptEnd } from './step-end.js';
import { WorkflowError } from './workflow-errors.js';

export class StepRun {
  readonly command: Command;
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  #timer: Timer | undefined;
  #timedOut: Error | undefined;
  #end: ((end: AttemptEnd) => void) | undefined;

  /** @param onEnd called once, never inside `start` */
  constructor(command: Command, clock: Clock, onEnd: (run: StepRun, end: AttemptEnd) => void) {
    this.command = command;
    this.#clock = clock;
    this.#end = (end) => {
      this.#end = undefined;
      this.#timer?.cancel();
      onEnd(this, end);
    };
  }

  /** @param idempotencyKey of the step, and `run` its work: a test may have put another one in its place */
  start(run: (context: StepContext) => unknown, idempotencyKey: string): void {
    const context = { idempotencyKey, attempt: this.command.attempts, signal: this.#controller.signal };
    const timeoutMs = this.command.step?.timeoutMs;
    if (timeoutMs !== undefined) this.#timer = this.#clock.setTimer(timeoutMs, () => this.#timeOut(timeoutMs));
    void this.#await(run, context);
  }

  /** Tells it to end: why, as the reason of its signal. */
  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  async #await(run: (context: StepContext) => unknown, context: StepContext): Promise<void> {
    let end: AttemptEnd;
    try {
      const value = await run(context);
      end = { kind: 'returned', value };
    } catch (error) {
      // What it throws once it was told to end says only that.
      end = this.#controller.signal.aborted ? { kind: 'cut' } : { kind: 'threw', error };
    }
    // As with handlers: one that was too late has failed, whatever it says.
    this.#end?.(this.#timedOut === undefined ? end : { kind: 'timed-out', error: this.#timedOut });
  }

  #timeOut(timeoutMs: number): void {
    const { name } = this.command;
    const message = `${commandText(this.command)} did not end within ${durationText(timeoutMs)}`;
    this.#timedOut = new WorkflowError('WORKFLOW_STEP_TIMED_OUT', message, { step: name });
    this.#controller.abort(this.#timedOut);
    const end: AttemptEnd = { kind: 'timed-out', error: this.#timedOut };
    // It may go on; should it not end, it is given up.
    this.#timer = this.#clock.setTimer(timeoutMs, () => this.#end?.(end));
  }
}
