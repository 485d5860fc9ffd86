// Says which runs take long while they still run: a log line after the fact tells nothing of a handler that hangs.
// One timer for all runs, for the oldest: a timer for each would cost more than the rest of the plugin.
import { AsyncResource } from 'node:async_hooks';
import { formatMessageId } from '../core/message-id.js';
import { OptionChecker } from '../core/options.js';
import type { Delivery } from '../core/delivery.js';
import type { Outcome } from '../core/outcome.js';
import type { Timer } from '../ports/clock.js';
import type { LogFields } from '../ports/logger.js';
import type { Plugin } from '../ports/plugin.js';
import type { RuntimeControl } from '../ports/runtime-view.js';

export interface SlowHandlerWarningOptions {
  /** Milliseconds after which a run is slow, 1 or more. */
  readonly afterMs: number;
  /** Whether a run that goes on is warned of again each `afterMs`. @default false: one warning per run */
  readonly repeat?: boolean | undefined;
}

/** Warnings at one moment, at most; the rest is counted in one line. A whole batch is slow at the same time. */
const MAX_LINES = 20;

/**
 * Logs a warning for each run that goes on for longer than `afterMs`, with handler, message, attempt and time. Of a batch
 * handler, the wait for the batch counts: the plugin stands around it.
 * @throws ConfigurationError on an option that is unknown or wrong.
 */
export function slowHandlerWarning(options: SlowHandlerWarningOptions): Plugin {
  const check = new OptionChecker('slowHandlerWarning');
  if (check.object('options', options, '{ afterMs: seconds(10) }')) {
    check.required(options, { afterMs: 'a duration in milliseconds' });
    check.unknownOptions(options, ['afterMs', 'repeat']);
    check.durationMs('afterMs', options.afterMs, { minMs: 1 });
    check.boolean('repeat', options.repeat);
  }
  check.throwIfAny();
  return new SlowHandlerWarning(options.afterMs, options.repeat ?? false);
}

/** In a list of its own kind: a Set costs more than a timer for each run, since it is rebuilt again and again. */
interface WatchedRun {
  /** The timer's is that of whichever run set it: a logger that adds the active trace would name the wrong one. */
  readonly context: AsyncResource;
  readonly delivery: Delivery;
  readonly startedMs: number;
  dueMs: number;
  earlier: WatchedRun | undefined;
  later: WatchedRun | undefined;
}

class SlowHandlerWarning implements Plugin {
  readonly name = 'slow-handler-warning';
  readonly #afterMs: number;
  readonly #repeat: boolean;
  /** By their due times: all wait equally long, and who is due again goes to the end. */
  #first: WatchedRun | undefined;
  #last: WatchedRun | undefined;
  #runtime: RuntimeControl | undefined;
  #timer: Timer | undefined;

  constructor(afterMs: number, repeat: boolean) {
    this.#afterMs = afterMs;
    this.#repeat = repeat;
  }

  onStart(runtime: RuntimeControl): void {
    this.#runtime = runtime;
  }

  async aroundHandler(delivery: Delivery, next: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const runtime = this.#runtime;
    if (runtime === undefined) return next();
    const startedMs = runtime.clock.now();
    const dueMs = startedMs + this.#afterMs;
    const context = new AsyncResource('PulseworkSlowHandlerWarning');
    const run: WatchedRun = { context, delivery, startedMs, dueMs, earlier: undefined, later: undefined };
    this.#append(run);
    if (this.#timer === undefined) this.#setTimer(runtime, this.#afterMs);
    try {
      return await next();
    } finally {
      this.#remove(run);
    }
  }

  onClose(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#runtime = undefined;
    this.#first = this.#last = undefined;
  }

  /** It may find the run it was set for gone: then it is set for the oldest that is left. */
  #setTimer(runtime: RuntimeControl, delayMs: number): void {
    this.#timer = runtime.clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      const now = runtime.clock.now();
      this.#warnOfDue(runtime, now);
      if (this.#first !== undefined) this.#setTimer(runtime, Math.max(1, this.#first.dueMs - now));
    });
  }

  #warnOfDue({ logger }: RuntimeControl, now: number): void {
    let warned = 0;
    for (let run = this.#first; run !== undefined && run.dueMs <= now; run = this.#first) {
      this.#remove(run);
      if (this.#repeat) {
        run.dueMs = now + this.#afterMs;
        this.#append(run);
      }
      warned += 1;
      const warn = (): void => logger.warn('handler is slow: the run goes on', fieldsOf(run, now));
      if (warned <= MAX_LINES) run.context.runInAsyncScope(warn);
    }
    if (warned > MAX_LINES) logger.warn('more handlers are slow', { runs: warned - MAX_LINES });
  }

  #append(run: WatchedRun): void {
    run.earlier = this.#last;
    if (this.#last === undefined) this.#first = run;
    else this.#last.later = run;
    this.#last = run;
  }

  /** Nothing happens to one that is not in the list: it was warned of, or everything is closed. */
  #remove(run: WatchedRun): void {
    const { earlier, later } = run;
    if (earlier !== undefined) earlier.later = later;
    else if (this.#first === run) this.#first = later;
    if (later !== undefined) later.earlier = earlier;
    else if (this.#last === run) this.#last = earlier;
    run.earlier = run.later = undefined;
  }
}

function fieldsOf({ delivery, startedMs }: WatchedRun, now: number): LogFields {
  return {
    handler: delivery.handler,
    topic: delivery.topic,
    messageId: formatMessageId(delivery.id),
    attempt: delivery.attempt,
    elapsedMs: now - startedMs,
  };
}
