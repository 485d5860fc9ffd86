// The log of one handler: secrets are redacted and texts cut as on its dead letters, and of lines that repeat without end
// only the first are written, the others counted.
import { cutText, shownError } from '../core/failure-report.js';
import { isError } from '../core/errors.js';
import type { Redact } from '../core/redaction.js';
import { redactText } from '../core/redaction.js';
import type { Clock } from '../ports/clock.js';
import type { LineLevel, LogFields, Logger } from '../ports/logger.js';
import { LimitedLogger } from '../system/limited-logger.js';

export interface HandlerLogOptions {
  readonly logger: Logger;
  /** The handler's name. */
  readonly handler: string;
  readonly redact: Redact | undefined;
  /** Lines of one kind that are written in 10 s. */
  readonly maxRepeats: number;
  readonly clock: Clock;
}

export class HandlerLog extends LimitedLogger {
  constructor({ logger, handler, redact, maxRepeats, clock }: HandlerLogOptions) {
    // Inside of the limit, which knows lines by their errors as they are.
    super({ logger: new ReadableLogger(logger, redact), clock, maxRepeats, fields: { handler } });
  }
}

class ReadableLogger implements Logger {
  readonly #logger: Logger;
  readonly #redact: Redact | undefined;

  constructor(logger: Logger, redact: Redact | undefined) {
    this.#logger = logger;
    this.#redact = redact;
  }

  isEnabled(level: LineLevel): boolean {
    return this.#logger.isEnabled?.(level) ?? true;
  }

  debug(message: string, fields?: LogFields): void {
    this.#logger.debug(message, this.#readable(fields));
  }

  info(message: string, fields?: LogFields): void {
    this.#logger.info(message, this.#readable(fields));
  }

  warn(message: string, fields?: LogFields): void {
    this.#logger.warn(message, this.#readable(fields));
  }

  error(message: string, fields?: LogFields): void {
    this.#logger.error(message, this.#readable(fields));
  }

  /** Texts that come from users: reasons and errors. An error of which nothing is redacted stays one, for the logger. */
  #readable(fields: LogFields | undefined): LogFields | undefined {
    const redact = this.#redact;
    if (fields === undefined) return fields;
    const { reason, error } = fields;
    const hasReason = typeof reason === 'string';
    if (redact === undefined && !hasReason) return fields;
    const shown = (text: string): string => redactText(text, redact);
    return {
      ...fields,
      ...(hasReason ? { reason: cutText(shown(reason)) } : {}),
      ...(redact !== undefined && isError(error) ? { error: shownError(error, shown) } : {}),
    };
  }
}
