// What the addon calls back into this process. A log handler that throws, and a token supplier that does, end it.
import { toError } from '../../core/errors.js';
import type { LineLevel, Logger } from '../../ports/logger.js';
import type { OfficialModule } from './official-client.js';

export type TokenSupplier = () => string | Promise<string>;

/**
 * Never throws and never rejects: where the supplier fails, the last token it gave is used again, and none before the first.
 * Then the broker says that it is not accepted, which is an error like any other.
 */
export function safeTokenSupplier(supplier: TokenSupplier, logger: Logger | undefined): () => Promise<string> {
  let last = '';
  return async () => {
    try {
      const token: unknown = await supplier();
      if (typeof token !== 'string') throw new TypeError('a token supplier must give a text');
      last = token;
    } catch (error) {
      warn(logger, 'the token supplier failed; the last token is used again', toError(error));
    }
    return last;
  };
}

/** By the numbers of the client's LogLevel. */
const LEVELS: readonly LineLevel[] = ['debug', 'info', 'warn', 'error'];

/** Who listens, by module: the client has one handler for the whole process. */
const listening = new WeakMap<OfficialModule, Set<Logger>>();

/** Gives the client's lines to `logger` until the returned function is called. */
export function listenToLog(module: OfficialModule, logger: Logger): () => void {
  let loggers = listening.get(module);
  if (loggers === undefined) {
    loggers = new Set();
    listening.set(module, loggers);
    const all = loggers;
    module.Client.setLogHandler((level, file, line, message) => {
      for (const one of all) logLine(one, level, message, `${file}:${line}`);
    });
  }
  loggers.add(logger);
  return () => void loggers.delete(logger);
}

function logLine(logger: Logger, level: number, message: string, at: string): void {
  const name = LEVELS[level] ?? 'info';
  try {
    if (logger.isEnabled?.(name) !== false) logger[name](`pulsar-client: ${message}`, { at });
  } catch {
    // A logger must not throw; here it would end the process.
  }
}

function warn(logger: Logger | undefined, message: string, error: Error): void {
  try {
    logger?.warn(message, { error });
  } catch {
    // The same.
  }
}
