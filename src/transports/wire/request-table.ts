// Requests of one connection that wait for an answer, by request id. Each has a time limit, and all of them fail when
// the connection closes: nobody waits for an answer that cannot come.
import { TransportError } from '../../core/errors.js';
import type { Clock, Timer } from '../../ports/clock.js';
import type { Command } from './protocol/commands.js';

interface Waiting {
  readonly subject: string;
  readonly resolve: (answer: Command) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer;
  readonly queued: (() => void) | undefined;
}

export class RequestTable {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /**
   * @param subject names the request in errors. @param queued see `queued`.
   * @throws TransportError CALL_TIMED_OUT, or what `failAll` is given.
   */
  wait(id: number, subject: string, timeoutMs: number, queued?: () => void): Promise<Command> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(timeoutMs, () => {
        const text = `${subject}: no answer within ${timeoutMs} ms; whether it happened is unknown`;
        this.fail(id, new TransportError('CALL_TIMED_OUT', text, { retriable: true }));
      });
      this.#waiting.set(id, { subject, resolve, reject, timer, queued });
    });
  }

  /** What a waiting request is called; undefined when nobody waits (any more). */
  subjectOf(id: number): string | undefined {
    return this.#waiting.get(id)?.subject;
  }

  /** The broker has it and answers when its turn comes, whenever that is: no time limit any more. */
  queued(id: number): void {
    const waiting = this.#waiting.get(id);
    waiting?.timer.cancel();
    waiting?.queued?.();
  }

  answer(id: number, answer: Command): void {
    this.#take(id)?.resolve(answer);
  }

  fail(id: number, error: Error): void {
    this.#take(id)?.reject(error);
  }

  failAll(error: Error): void {
    for (const id of [...this.#waiting.keys()]) this.fail(id, error);
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.timer.cancel();
    return waiting;
  }
}
