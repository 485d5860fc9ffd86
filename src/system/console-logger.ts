// Log lines as JSON, one per line: info and below on standard output, warnings and errors on standard error.
import { isError } from '../core/errors.js';
import { shownError } from '../core/failure-report.js';
import { OptionChecker } from '../core/options.js';
import type { LogFields, Logger } from '../ports/logger.js';
import { systemEnvironment } from './environment.js';
import { NOT_SHOWN, readFields } from './log-fields.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export interface ConsoleLoggerOptions {
  /** Lines below it are not written. @default the environment variable `PULSEWORK_LOG_LEVEL`, else `info` */
  readonly level?: LogLevel | undefined;
  /** Takes each line. @default standard output and error */
  readonly write?: ((line: string, level: LogLevel) => void) | undefined;
}

/** @throws ConfigurationError on an unknown option or level, also one in `PULSEWORK_LOG_LEVEL`. */
export function consoleLogger(options: ConsoleLoggerOptions = {}): Logger {
  checkOptions(options);
  const threshold = LOG_LEVELS.indexOf(options.level ?? defaultLevel());
  const write = options.write ?? writeToConsole;
  const at = (level: LogLevel) => {
    const enabled = LOG_LEVELS.indexOf(level) >= threshold;
    return (message: string, fields?: LogFields): void => {
      if (enabled) write(formatLine(level, message, fields), level);
    };
  };
  return {
    isEnabled: (level) => LOG_LEVELS.indexOf(level) >= threshold,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
}

function checkOptions(options: ConsoleLoggerOptions): void {
  const check = new OptionChecker('consoleLogger');
  const given: unknown = options;
  if (check.object('options', given)) {
    check.unknownOptions(given, ['level', 'write']);
    check.oneOf('level', options.level, LOG_LEVELS);
    check.function('write', options.write);
  }
  check.oneOf('PULSEWORK_LOG_LEVEL', systemEnvironment.variable('PULSEWORK_LOG_LEVEL'), LOG_LEVELS);
  check.throwIfAny();
}

function defaultLevel(): LogLevel {
  return (systemEnvironment.variable('PULSEWORK_LOG_LEVEL') as LogLevel | undefined) ?? 'info';
}

function writeToConsole(line: string, level: LogLevel): void {
  if (level === 'warn' || level === 'error') console.error(line);
  else console.log(line);
}

/** What a line says of itself. */
const OWN_NAMES: ReadonlySet<string> = new Set(['level', 'message']);

function formatLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  const parts = Object.entries({ level, message, ...readFields(fields, OWN_NAMES) }).flatMap(([name, value]) => {
    const text = jsonOf(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${parts.join(',')}}`;
}

/** Undefined for what JSON leaves out, such as a function. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, withoutCycles());
  } catch {
    return JSON.stringify(NOT_SHOWN);
  }
}

/** The same object twice is no cycle: only one inside itself is. */
function withoutCycles(): (this: unknown, key: string, value: unknown) => unknown {
  const path: unknown[] = [];
  return function shown(this: unknown, _key: string, value: unknown): unknown {
    if (isError(value)) return shownError(value);
    if (typeof value === 'bigint') return value.toString();
    if (typeof value !== 'object' || value === null) return value;
    // `this` is what holds the value: whatever was entered after it has been left.
    while (path.length > 0 && path.at(-1) !== this) path.pop();
    if (path.includes(value)) return '[circular]';
    path.push(value);
    return value;
  };
}
