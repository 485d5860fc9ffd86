// Log lines as JSON, one per line: info and below on standard output, warnings and errors on standard error.
import type { LogFields, Logger } from '../ports/logger.js';
import { systemEnvironment } from './environment.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export interface ConsoleLoggerOptions {
  /** Lines below it are not written. @default the environment variable `PULSEWORK_LOG_LEVEL`, else `info` */
  readonly level?: LogLevel | undefined;
  /** Takes each line. @default standard output and error */
  readonly write?: ((line: string, level: LogLevel) => void) | undefined;
}

export function consoleLogger(options: ConsoleLoggerOptions = {}): Logger {
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

function defaultLevel(): LogLevel {
  const asked = systemEnvironment.variable('PULSEWORK_LOG_LEVEL');
  if (asked !== undefined && (LOG_LEVELS as readonly string[]).includes(asked)) return asked as LogLevel;
  return 'info';
}

function writeToConsole(line: string, level: LogLevel): void {
  if (level === 'warn' || level === 'error') console.error(line);
  else console.log(line);
}

function formatLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  const seen = new WeakSet();
  return JSON.stringify({ level, message, ...fields }, (_key, value: unknown) => {
    if (value instanceof Error) return { name: value.name, message: value.message, stack: value.stack };
    if (typeof value === 'bigint') return value.toString();
    if (typeof value === 'object' && value !== null) {
      if (seen.has(value)) return '[circular]';
      seen.add(value);
    }
    return value;
  });
}
