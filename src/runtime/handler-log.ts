// The log of one handler: secrets are redacted as on its dead letters, and of lines that repeat without end only the first
// are written, the others counted.
import { errorName, shownError } from '../core/failure-report.js';
import { isError } from '../core/errors.js';
import type { Redact } from '../core/redaction.js';
import { redactText } from '../core/redaction.js';
import { seconds } from '../core/options.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { LineLevel, LogFields, Logger } from '../ports/logger.js';

const WINDOW_MS = seconds(10);
/** More kinds of lines than a handler has: beyond it errors have endless names, and the oldest kind is forgotten. */
const MAX_KINDS = 1_000;

export interface HandlerLogOptions {
  readonly logger: Logger;
  /** The handler's name. */
  readonly handler: string;
  readonly redact: Redact | undefined;
  /** Lines of one kind that are written in 10 s. */
  readonly maxRepeats: number;
  readonly clock: Clock;
}

/** Lines of one kind since `startMs`. */
interface Repeats {
  readonly startMs: number;
  written: number;
  notWritten: number;
  timer: Timer | undefined;
}

export class HandlerLog implements Logger {
  readonly #options: HandlerLogOptions;
  readonly #kinds = new Map<string, Repeats>();
  #closed = false;

  constructor(options: HandlerLogOptions) {
    this.#options = options;
  }

  isEnabled(level: LineLevel): boolean {
    return this.#options.logger.isEnabled?.(level) ?? true;
  }

  /** Not limited: who asks for it wants each of them. */
  debug(message: string, fields?: LogFields): void {
    this.#options.logger.debug(message, this.#redacted(fields));
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

  /** Tells what was not written. Lines that still come, of runs that were given up, are all written. */
  close(): void {
    this.#closed = true;
    for (const kind of this.#kinds.keys()) this.#endWindow(kind);
  }

  #write(level: LineLevel, message: string, fields?: LogFields): void {
    const error = fields?.['error'];
    // A message of this library and the name of a class: what tells one fault from another without its details.
    const kind = `${level} ${message} ${isError(error) ? errorName(error) : ''}`;
    if (this.#closed || this.#admit(kind)) this.#options.logger[level](message, this.#redacted(fields));
  }

  #admit(kind: string): boolean {
    const { clock, maxRepeats } = this.#options;
    let repeats = this.#kinds.get(kind);
    if (repeats === undefined || clock.now() >= repeats.startMs + WINDOW_MS) repeats = this.#newWindow(kind);
    if (repeats.written < maxRepeats) {
      repeats.written++;
      return true;
    }
    repeats.notWritten++;
    const endsInMs = repeats.startMs + WINDOW_MS - clock.now();
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
    const { logger, handler } = this.#options;
    logger.warn('lines like one above were not written', {
      handler,
      line: kind.trim(),
      notWritten: repeats.notWritten,
    });
  }

  /** Texts that come from users: reasons and errors. */
  #redacted(fields: LogFields | undefined): LogFields | undefined {
    const { redact } = this.#options;
    if (redact === undefined || fields === undefined) return fields;
    const { reason, error } = fields;
    const shown = (text: string): string => redactText(text, redact);
    return {
      ...fields,
      ...(typeof reason === 'string' ? { reason: shown(reason) } : {}),
      ...(isError(error) ? { error: shownError(error, shown) } : {}),
    };
  }
}
