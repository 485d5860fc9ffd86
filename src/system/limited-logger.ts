// A log in which lines that repeat without end do not hide everything else: the first ones of a kind are written, the
// others counted, and the count is told.
import { PulseworkError, isError } from '../core/errors.js';
import { errorName } from '../core/failure-report.js';
import { seconds } from '../core/options.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { LineLevel, LogFields, Logger } from '../ports/logger.js';

const DEFAULT_WINDOW_MS = seconds(10);
/** More kinds of lines than anybody has: beyond it errors have endless names, and the oldest kind is forgotten. */
const MAX_KINDS = 1_000;

export interface LimitedLoggerOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Lines of one kind that are written in one window. */
  readonly maxRepeats: number;
  /** In milliseconds. @default 10 seconds */
  readonly windowMs?: number | undefined;
  /** What of a message makes its kind, where messages name things. @default the message */
  readonly kindOf?: ((message: string) => string) | undefined;
  /** Fields of the line that tells a count. */
  readonly fields?: LogFields | undefined;
}

/** Lines of one kind since `startMs`. */
interface Repeats {
  readonly startMs: number;
  written: number;
  notWritten: number;
  timer: Timer | undefined;
}

export class LimitedLogger implements Logger {
  readonly #options: LimitedLoggerOptions;
  readonly #windowMs: number;
  readonly #kinds = new Map<string, Repeats>();
  #closed = false;

  constructor(options: LimitedLoggerOptions) {
    this.#options = options;
    this.#windowMs = options.windowMs ?? DEFAULT_WINDOW_MS;
  }

  isEnabled(level: LineLevel): boolean {
    return this.#options.logger.isEnabled?.(level) ?? true;
  }

  /** Not limited: who asks for it wants each of them. */
  debug(message: string, fields?: LogFields): void {
    this.#options.logger.debug(message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#write('error', message, fields);
  }

  /** Tells what was not written, and leaves no timer. Lines that still come are all written. */
  close(): void {
    this.#closed = true;
    for (const kind of this.#kinds.keys()) this.#endWindow(kind);
  }

  #write(level: LineLevel, message: string, fields?: LogFields): void {
    const { kindOf = (text) => text } = this.#options;
    // A message of this library, the name of a class and a code: what tells one fault from another without its details.
    const kind = `${level} ${kindOf(message)} ${faultOf(fields?.['error'])}`;
    if (this.#closed || this.#admit(kind)) this.#options.logger[level](message, fields);
  }

  #admit(kind: string): boolean {
    const { clock, maxRepeats } = this.#options;
    let repeats = this.#kinds.get(kind);
    if (repeats === undefined || clock.now() >= repeats.startMs + this.#windowMs) repeats = this.#newWindow(kind);
    if (repeats.written < maxRepeats) {
      repeats.written++;
      return true;
    }
    repeats.notWritten++;
    const endsInMs = repeats.startMs + this.#windowMs - clock.now();
    repeats.timer ??= clock.setTimer(endsInMs, () => this.#endWindow(kind));
    return false;
  }

  #newWindow(kind: string): Repeats {
    this.#endWindow(kind);
    const repeats = { startMs: this.#options.clock.now(), written: 0, notWritten: 0, timer: undefined };
    this.#kinds.set(kind, repeats);
    const oldest = this.#kinds.keys().next();
    if (this.#kinds.size > MAX_KINDS && oldest.done !== true) this.#endWindow(oldest.value);
    return repeats;
  }

  #endWindow(kind: string): void {
    const repeats = this.#kinds.get(kind);
    this.#kinds.delete(kind);
    if (repeats === undefined) return;
    repeats.timer?.cancel();
    if (repeats.notWritten === 0) return;
    const { logger, fields } = this.#options;
    const { notWritten } = repeats;
    logger.warn('lines like one above were not written', { ...fields, line: kind.trim(), notWritten });
  }
}

function faultOf(error: unknown): string {
  if (!isError(error)) return '';
  return error instanceof PulseworkError ? `${errorName(error)} ${error.code}` : errorName(error);
}
