// Ends a runtime in an orderly way when the process is told to end: the first signal drains, the second closes at once.
// It never ends the process: `runtime.closed` says when that may happen.
import { PulseworkError, describeValue, toError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import type { Timer } from '../ports/clock.js';
import type { Plugin } from '../ports/plugin.js';
import type { ProcessSignals } from '../ports/process-signals.js';
import type { RuntimeControl } from '../ports/runtime-view.js';

export interface DrainOnSignalsOptions {
  /** Which signals. @default ['SIGTERM', 'SIGINT'] */
  readonly signals?: readonly string[] | undefined;
  /** Where they come from. @default this process */
  readonly processSignals?: ProcessSignals | undefined;
}

export const DEFAULT_DRAIN_SIGNALS: readonly string[] = ['SIGTERM', 'SIGINT'];

/**
 * npm and other launchers pass on what the terminal has given their child already: the same signal again within this time
 * is one press of Ctrl-C, not two.
 */
const PASSED_ON_MS = 500;
/** How often a runtime that still starts is asked to end. */
const TRY_AGAIN_MS = 100;

/**
 * @param ofSystem where signals come from unless the options say otherwise.
 * @throws ConfigurationError on an option that is unknown or wrong, such as a signal that nobody can listen for.
 */
export function drainOnSignals(options: DrainOnSignalsOptions, ofSystem: ProcessSignals): Plugin {
  checkOptions(options, ofSystem);
  return new DrainOnSignals(options.signals ?? DEFAULT_DRAIN_SIGNALS, options.processSignals ?? ofSystem);
}

class DrainOnSignals implements Plugin {
  readonly name = 'drain-on-signals';
  readonly #signals: readonly string[];
  readonly #source: ProcessSignals;
  #stopListening: (() => void)[] = [];
  #first: { readonly signal: string; readonly atMs: number } | undefined;
  #tryAgain: Timer | undefined;

  constructor(signals: readonly string[], source: ProcessSignals) {
    this.#signals = signals;
    this.#source = source;
  }

  onStart(runtime: RuntimeControl): void {
    this.#first = undefined;
    for (const signal of new Set(this.#signals))
      this.#stopListening.push(this.#source.on(signal, () => this.#arrived(signal, runtime)));
  }

  onClose(): void {
    this.#tryAgain?.cancel();
    this.#stopListen();
  }

  #stopListen(): void {
    for (const stop of this.#stopListening.splice(0)) stop();
  }

  #arrived(signal: string, runtime: RuntimeControl): void {
    const { clock, logger } = runtime;
    if (this.#first === undefined) {
      this.#first = { signal, atMs: clock.now() };
      logger.info('signal received; the runtime drains, a second signal closes it at once', { signal });
      this.#end('drain', runtime);
      return;
    }
    if (signal === this.#first.signal && clock.now() - this.#first.atMs < PASSED_ON_MS) return;
    // From here on a signal has the effect it has without this plugin: whoever asks a third time does not want to wait.
    this.#stopListen();
    logger.warn('second signal received; the runtime closes without waiting for its handlers', { signal });
    this.#end('close', runtime);
  }

  /** Nobody awaits it here: who wants to know how it ends watches `runtime.closed`. */
  #end(how: 'drain' | 'close', runtime: RuntimeControl): void {
    this.#tryAgain?.cancel();
    const failed = (error: unknown): void => this.#notEnded(how, runtime, toError(error));
    try {
      runtime[how]().catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  /** While other plugins still start, the runtime cannot end yet; the signal must not be lost for that. */
  #notEnded(how: 'drain' | 'close', runtime: RuntimeControl, error: Error): void {
    if (error instanceof PulseworkError && error.code === 'ILLEGAL_STATE')
      this.#tryAgain = runtime.clock.setTimer(TRY_AGAIN_MS, () => this.#end(how, runtime));
    else runtime.logger.error(`the runtime does not ${how}`, { plugin: this.name, error });
  }
}

function checkOptions(options: DrainOnSignalsOptions, ofSystem: ProcessSignals): void {
  const check = new OptionChecker('drainOnSignals');
  if (check.object('options', options)) {
    check.unknownOptions(options, ['signals', 'processSignals']);
    const { signals, processSignals = ofSystem }: DrainOnSignalsOptions = options;
    const before = check.problems.length;
    check.methods('processSignals', processSignals, ['on'], 'see the port ProcessSignals');
    if (check.problems.length === before) checkSignals(signals, processSignals.names, check);
  }
  check.throwIfAny();
}

function checkSignals(signals: unknown, names: readonly string[], check: OptionChecker): void {
  if (signals === undefined) return;
  if (!Array.isArray(signals) || signals.length === 0) {
    check.problem(`"signals" must be a list of at least one signal, got ${describeValue(signals)}`);
    return;
  }
  for (const signal of signals as readonly unknown[]) {
    if (names.includes(signal as string)) continue;
    const rule = `must be signals that can be listened for here, such as ${DEFAULT_DRAIN_SIGNALS.join(' and ')}`;
    check.problem(`"signals" ${rule}; got ${describeValue(signal)}`);
  }
}
