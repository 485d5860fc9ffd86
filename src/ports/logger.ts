// Where log lines go. A logger must not throw; what it does throw is swallowed by the runtime.

export type LogFields = Readonly<Record<string, unknown>>;

/** Of a line. */
export type LineLevel = 'debug' | 'info' | 'warn' | 'error';

export interface Logger {
  /** Whether lines of this level go anywhere; without it all do. Spares the work for lines that nobody reads. */
  isEnabled?(level: LineLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
