// A logger of somebody else, as code that must go on whatever becomes of a line may call it.
import { containRejection } from '../core/errors.js';
import type { LineLevel, LogFields, Logger } from '../ports/logger.js';

/**
 * A logger that throws must not decide about a message or a connection, nor one that gives a promise end the process by
 * its rejection.
 */
export function safeLogger(logger: Logger): Logger {
  const safe = (level: LineLevel): Logger['info'] => {
    return (message, fields) => {
      try {
        const write: (text: string, fields?: LogFields) => unknown = logger[level].bind(logger);
        containRejection(write(message, fields));
      } catch {
        // Nowhere to tell: the logger itself is what failed.
      }
    };
  };
  return {
    isEnabled: (level) => {
      try {
        return logger.isEnabled?.(level) ?? true;
      } catch {
        return true;
      }
    },
    debug: safe('debug'),
    info: safe('info'),
    warn: safe('warn'),
    error: safe('error'),
  };
}
