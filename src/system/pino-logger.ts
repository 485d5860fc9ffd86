// The Logger port on a pino logger, or on anything with its methods. Nothing is imported: the user's own instance, with its
// transports and levels, is what writes.
import { ConfigurationError, describeValue, isError } from '../core/errors.js';
import { shownError } from '../core/failure-report.js';
import type { LineLevel, LogFields, Logger } from '../ports/logger.js';
import { readFields } from './log-fields.js';

type Write = (fields: object, message: string) => void;

/** What is used of pino (version 7 or newer). */
export interface PinoLike {
  isLevelEnabled?(level: string): boolean;
  debug: Write;
  info: Write;
  warn: Write;
  error: Write;
}

/** An error of a line is the field `err`, as pino names it, its causes told once. @throws ConfigurationError */
export function pinoLogger(pino: PinoLike): Logger {
  const given: unknown = pino;
  if (!isPinoLike(given))
    throw new ConfigurationError([`pinoLogger takes a pino logger such as pino(), got ${describeValue(given)}`]);
  const at = (level: LineLevel) => (message: string, fields?: LogFields) => pino[level](withErr(fields), message);
  return {
    isEnabled: (level) => pino.isLevelEnabled?.(level) ?? true,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

function isPinoLike(value: unknown): value is PinoLike {
  if (typeof value !== 'object' || value === null) return false;
  const methods = value as Record<string, unknown>;
  return ['debug', 'info', 'warn', 'error'].every((level) => typeof methods[level] === 'function');
}

/** What pino writes on each line by itself. */
const OWN_NAMES: ReadonlySet<string> = new Set(['level', 'time', 'msg']);

function withErr(fields: LogFields | undefined): object {
  const { error, ...rest } = readFields(fields, OWN_NAMES);
  if (error === undefined) return rest;
  const shown: unknown = isError(error) ? shownError(error) : error;
  // Without a prototype pino takes its type from the name, not from the constructor, which is none.
  return { ...rest, err: typeof shown === 'object' ? Object.assign(Object.create(null) as object, shown) : shown };
}
