// Makes batches of deliveries that run side by side: towards the Dispatcher an ordinary handler, towards the user's
// function a batch handler. Each delivery gets its own outcome; nothing is settled here, and nothing else of a
// delivery's journey is shared.
import type { BatchHandlerFunction, BatchLimits } from '../core/batch-handler.js';
import type { Delivery } from '../core/delivery.js';
import { PulseworkError, containRejection, describeValue } from '../core/errors.js';
import type { Outcome } from '../core/outcome.js';
import { isOutcome, retry } from '../core/outcome.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { BatchRun, HandlerRun } from './handler-run.js';

export interface BatchCollectorOptions {
  /** The handler's name. */
  readonly name: string;
  readonly handle: BatchHandlerFunction<never>;
  readonly limits: BatchLimits;
  /** Batches that run at a time, at most. */
  readonly concurrency: number;
  /** False once the connection of a delivery is gone, or its subscription stands still. */
  readonly mayStart: (delivery: Delivery) => boolean;
  /** Calls the batch handler for these deliveries. */
  readonly around: (deliveries: readonly Delivery[], run: () => Promise<unknown>) => Promise<unknown>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A delivery that may run now. */
export interface BatchMember {
  readonly delivery: Delivery;
  readonly run: HandlerRun;
  readonly payloadBytes: number;
}

interface WaitingMember extends BatchMember {
  readonly joinedMs: number;
  /** It has waited for `maxWaitMs`. */
  due: boolean;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export class BatchCollector {
  readonly #options: BatchCollectorOptions;
  /** In the order in which they joined. */
  readonly #waiting: WaitingMember[] = [];
  #waitingBytes = 0;
  #running = 0;
  #flushing = false;
  #timer: Timer | undefined;

  constructor(options: BatchCollectorOptions) {
    this.#options = options;
  }

  /** Resolves with the delivery's own outcome; rejects with what the batch handler threw, or why it did not start. */
  join(member: BatchMember): Promise<Outcome> {
    const { run } = member;
    if (run.interruption !== undefined) return Promise.reject(run.interruption);
    return new Promise((resolve, reject) => {
      run.collect();
      this.#waiting.push({ ...member, joinedMs: this.#options.clock.now(), due: false, resolve, reject });
      this.#waitingBytes += member.payloadBytes;
      this.#startDue();
    });
  }

  /** Nothing more is to come: what waits starts now, and so does all that still joins. */
  flush(): void {
    this.#flushing = true;
    this.#startDue();
  }

  /** What has not started never will: it is rejected with `reason`. */
  interrupt(reason: Error): void {
    this.#waitingBytes = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
  }

  close(): void {
    this.#timer?.cancel();
    this.#waiting.length = 0;
  }

  #startDue(): void {
    while (this.#running < this.#options.concurrency && this.#isDue()) void this.#start(this.#take());
    this.#setTimer();
  }

  #isDue(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    const { maxMessages, maxBytes } = this.#options.limits;
    const full = this.#waiting.length >= maxMessages || this.#waitingBytes >= maxBytes;
    return full || first.due || this.#flushing;
  }

  /** As many of the longest waiting as fit; a message larger than a batch may be is one by itself. */
  #take(): readonly WaitingMember[] {
    const { maxMessages, maxBytes } = this.#options.limits;
    let count = 0;
    let bytes = 0;
    for (const { payloadBytes } of this.#waiting) {
      if (count === maxMessages || (count > 0 && bytes + payloadBytes > maxBytes)) break;
      count++;
      bytes += payloadBytes;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  /** One timer, for the longest waiting; it may find another one in its place. */
  #setTimer(): void {
    const [first] = this.#waiting;
    if (first === undefined || first.due || this.#timer !== undefined) return;
    const { clock, limits } = this.#options;
    const waitMs = Math.max(0, first.joinedMs + limits.maxWaitMs - clock.now());
    this.#timer = clock.setTimer(waitMs, () => {
      this.#timer = undefined;
      this.#markDue();
      this.#startDue();
    });
  }

  #markDue(): void {
    const { clock, limits } = this.#options;
    const dueIfJoinedMs = clock.now() - limits.maxWaitMs;
    for (const member of this.#waiting) {
      if (member.joinedMs > dueIfJoinedMs) return;
      member.due = true;
    }
  }

  async #start(taken: readonly WaitingMember[]): Promise<void> {
    // A plugin that gave an outcome without waiting for the handler's has ended its run.
    const collecting = taken.filter(({ run }) => run.collecting);
    const members = collecting.filter((member) => this.#mayStart(member));
    if (members.length === 0) return;
    this.#running++;
    const batch = new RunningBatch(() => {
      this.#running--;
      this.#startDue();
    });
    for (const { run } of members) run.begin(batch);
    try {
      this.#answer(members, await this.#handle(members));
    } catch (error) {
      for (const { reject } of members) reject(error);
    }
    batch.end();
  }

  /** What has happened since it joined may keep it from running. */
  #mayStart({ delivery, run, reject }: WaitingMember): boolean {
    if (this.#options.mayStart(delivery)) return true;
    reject(run.putOff());
    return false;
  }

  /** Async, so that a throw is a rejection and never comes before the batch has started. */
  async #handle(members: readonly WaitingMember[]): Promise<unknown> {
    const deliveries = members.map(({ delivery }) => delivery);
    return this.#options.around(deliveries, async () =>
      this.#options.handle(deliveries.map((delivery) => delivery as never)),
    );
  }

  #answer(members: readonly WaitingMember[], result: unknown): void {
    if (Array.isArray(result)) return this.#answerEach(members, result);
    const problem = problemForAll(result);
    for (const { resolve } of members) resolve(problem === undefined ? (result as Outcome) : this.#failed(problem));
  }

  /**
   * Each by its own. Those without one are retried; the others keep theirs, because their work may be done. Where there are
   * too many nobody knows whose they are, so all are retried.
   */
  #answerEach(members: readonly WaitingMember[], outcomes: readonly unknown[]): void {
    const deliveries = members.length;
    if (outcomes.length !== deliveries) {
      this.#options.logger.error('a batch handler returned a wrong number of outcomes', {
        handler: this.#options.name,
        deliveries,
        outcomes: outcomes.length,
      });
    }
    for (const outcome of outcomes) containRejection(outcome);
    const returned = `it returned ${outcomes.length} outcomes for ${deliveries} deliveries`;
    const rule = 'return one for all or one each';
    for (const [i, { resolve }] of members.entries()) {
      const outcome = outcomes[i];
      if (outcomes.length > deliveries) resolve(this.#failed(`${returned}, and which are whose is unknown; ${rule}`));
      else if (i >= outcomes.length) resolve(this.#failed(`${returned} and none for this one; ${rule}`));
      else resolve(isOutcome(outcome) ? outcome : this.#failed(notAnOutcome(outcome)));
    }
  }

  #failed(problem: string): Outcome {
    const message = `handler ${JSON.stringify(this.#options.name)}: ${problem}`;
    return retry(new PulseworkError('HANDLER_RETURNED_NO_OUTCOME', message));
  }
}

/** A call of the batch handler. Its slot is free when it ends, or earlier where its deliveries are given up. */
class RunningBatch implements BatchRun {
  readonly #free: () => void;
  #state: 'running' | 'given up' | 'ended' = 'running';

  constructor(free: () => void) {
    this.#free = free;
  }

  giveUp(): boolean {
    if (this.#state === 'given up') return false;
    if (this.#state === 'running') {
      this.#state = 'given up';
      this.#free();
    }
    return true;
  }

  end(): void {
    const wasRunning = this.#state === 'running';
    this.#state = 'ended';
    if (wasRunning) this.#free();
  }
}

function problemForAll(result: unknown): string | undefined {
  if (!isOutcome(result)) {
    return `a batch handler must return an outcome for all deliveries or a list with one for each, got ${describeValue(result)}`;
  }
  if (result.kind !== 'success' || !Array.isArray(result.messages) || result.messages.length === 0) return undefined;
  return 'success(message) for all deliveries would publish the message once for each; return one outcome each and put the message on one of them';
}

function notAnOutcome(value: unknown): string {
  const hint = value instanceof Promise ? ' (await the list: Promise.all(...))' : '';
  return `each element that a batch handler returns must be an outcome such as success(), got ${describeValue(value)}${hint}`;
}
